// Products with weights, where almost all of the time goes: in JavaScript, or by a kernel of WebAssembly (kernel.wat). Both
// are objects with the same two functions, and a test holds them equal.

import { matrix } from "./matrices.js";

export const plainProducts = {
  /** Memory for weights. -> Float32Array */
  allocate: (size) => new Float32Array(size),

  /** y = x Wᵀ + b. x: (rows, inputs), weight: (outputs, inputs), bias: (outputs,) or null -> (rows, outputs) */
  multiply(x, weight, bias) {
    const y = matrix(x.rows, weight.rows);
    for (let output = 0; output < weight.rows; output++) {
      let row = 0;
      for (; row + 4 < x.rows; row += 5) fiveRows(x, weight, y, row, output);
      for (; row < x.rows; row++) oneRow(x, weight, y, row, output);
    }
    if (bias) addBias(y, bias);
    return y;
  },
};

/** y: (rows, outputs), bias: (outputs,) */
export function addBias({ values }, bias) {
  for (let start = 0; start < values.length; start += bias.length) {
    for (let at = 0; at < bias.length; at++) values[start + at] += bias[at];
  }
}

function oneRow(x, weight, y, row, output) {
  const size = x.columns;
  const from = x.values;
  const factors = weight.values;
  const start = output * size;
  let one = 0;
  let two = 0;
  let three = 0;
  let four = 0;
  let at = row * size;
  let to = start;
  for (const end = start + size - 3; to < end; to += 4, at += 4) {
    one += from[at] * factors[to];
    two += from[at + 1] * factors[to + 1];
    three += from[at + 2] * factors[to + 2];
    four += from[at + 3] * factors[to + 3];
  }
  for (; to < start + size; to++, at++) one += from[at] * factors[to];
  y.values[row * y.columns + output] = one + two + three + four;
}

/** Five rows read each weight once: as many as a beam has most often. */
function fiveRows(x, weight, y, row, output) {
  const size = x.columns;
  const from = x.values;
  const factors = weight.values;
  const start = output * size;
  const first = row * size;
  let one = 0;
  let two = 0;
  let three = 0;
  let four = 0;
  let five = 0;
  for (let at = 0; at < size; at++) {
    const factor = factors[start + at];
    one += from[first + at] * factor;
    two += from[first + size + at] * factor;
    three += from[first + 2 * size + at] * factor;
    four += from[first + 3 * size + at] * factor;
    five += from[first + 4 * size + at] * factor;
  }
  for (const [number, sum] of [one, two, three, four, five].entries()) y.values[(row + number) * y.columns + output] = sum;
}
