// A matrix is {rows, columns, values}: a typed array, row by row. Shapes in comments are (rows, columns).

export function matrix(rows, columns, values = new Float32Array(rows * columns)) {
  return { rows, columns, values };
}

/** One row, as a part of the same memory. -> (columns,) */
export function rowOf({ columns, values }, number) {
  return values.subarray(number * columns, (number + 1) * columns);
}

/** Adds two matrices of one shape. */
export function sumOf(one, other) {
  const sum = matrix(one.rows, one.columns);
  for (let at = 0; at < sum.values.length; at++) sum.values[at] = one.values[at] + other.values[at];
  return sum;
}

/** The numbers of the `count` largest values of a row, largest first, the first of equals, as in decoding/engine.py. */
export function likeliest(values, count) {
  const best = []; // numbers, largest value first
  for (let at = 0; at < values.length; at++) {
    if (best.length === count && !(values[at] > values[best[count - 1]])) continue;
    let place = best.length;
    while (place > 0 && values[at] > values[best[place - 1]]) place--;
    best.splice(place, 0, at);
    if (best.length > count) best.pop();
  }
  return best;
}
