// The largest values of a row, as in kernels/likeliest.py.

/** The numbers of the `count` largest values, largest first; of two alike the first. values: (size,) */
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
