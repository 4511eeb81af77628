// Attention by hand, on matrices as lists of rows.

import { whole } from "./numbers.js";

const MOST = 1e8; // of a number, so that products of products stay numbers in float32

/** Rows of numbers, a line each, with spaces or commas. -> {matrix} or {problem: [name, values]}, to be said. */
export function readMatrix(text, largest) {
  const lines = text.split("\n").map((line) => line.trim()).filter((line) => line);
  if (!lines.length) return { problem: ["problemEmpty", {}] };
  const matrix = [];
  for (const [at, line] of lines.entries()) {
    const row = [];
    for (const part of line.split(/[\s,;]+/u).filter((one) => one)) {
      const number = Number(part.replaceAll("−", "-"));
      if (!(Math.abs(number) <= MOST)) return { problem: [Number.isNaN(number) ? "problemNumber" : "problemHuge", { row: at + 1, part: part.slice(0, 20), most: whole(MOST) }] };
      row.push(number);
    }
    if (matrix.length && row.length !== matrix[0].length) {
      return { problem: ["problemRow", { row: at + 1, count: row.length, first: matrix[0].length }] };
    }
    matrix.push(row);
  }
  if (matrix.length > largest || matrix[0].length > largest) return { problem: ["problemLarge", { largest }] };
  return { matrix };
}

export function multiply(left, right) {
  return left.map((row) => right[0].map((_, column) => row.reduce((sum, value, at) => sum + value * right[at][column], 0)));
}

function transposed(matrix) {
  return matrix[0].map((_, column) => matrix.map((row) => row[column]));
}

/** Each row's softmax; what is -Infinity gets nothing, a row of nothing else too. */
function softmaxRows(matrix) {
  return matrix.map((row) => {
    const most = Math.max(...row);
    if (most === -Infinity) return row.map(() => 0);
    const powers = row.map((value) => Math.exp(value - most));
    const sum = powers.reduce((total, value) => total + value, 0);
    return powers.map((value) => value / sum);
  });
}

/** The steps of equation 1: {scores, scaled, masked, weights, output}. */
export function attend(queries, keys, values, { scaling, lookAhead }) {
  const root = Math.sqrt(queries[0].length);
  const scores = multiply(queries, transposed(keys));
  const scaled = scores.map((row) => row.map((value) => (scaling ? value / root : value)));
  const masked = scaled.map((row, query) => row.map((value, key) => (lookAhead && key > query ? -Infinity : value)));
  const weights = softmaxRows(masked);
  return { scores, scaled, masked, weights, output: multiply(weights, values) };
}

/** Why matrices don't fit one another, to be said, or null. */
export function misfit(names, matrices) {
  const [x, ...others] = matrices;
  if (names[0] === "x") {
    const bad = others.findIndex((matrix) => matrix.length !== x[0].length);
    if (bad >= 0) return ["problemRows", { name: names[bad + 1], rows: others[bad].length, wanted: x[0].length }];
    if (others[0][0].length !== others[1][0].length) return ["problemWidths", { one: names[1], other: names[2] }];
    return null;
  }
  const [queries, keys, values] = matrices;
  if (queries[0].length !== keys[0].length) return ["problemWidths", { one: names[0], other: names[1] }];
  if (keys.length !== values.length) return ["problemCounts", { one: names[1], other: names[2] }];
  return null;
}
