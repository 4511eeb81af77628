// The arrays of a record (docs/record.md), decoded when they are asked for, and kept.

/** Stands in a record for a score that a mask hides. */
export const HIDDEN = -3.4028234663852886e38;
const NOTATION_FROM = 1e-3;
const DIGITS = 3;
let halfTable = null;

/** -> get(name): {shape, values}, or null where the record has no such array. */
export function openNumbers(record) {
  const entries = record.arrays ?? {};
  const known = new Map();
  const get = (name) => {
    if (!Object.hasOwn(entries, name)) return null;
    if (!known.has(name)) known.set(name, decodeEntry(entries[name], get));
    return known.get(name);
  };
  return get;
}

/** One matrix of an array (several, rows, columns): {rows, columns, values, step(row, value)}; step: by how much the
 * stored form of a number tells it from the next. */
export function matrixOf(array, number = 0) {
  const [rows, columns] = array.shape.slice(-2);
  const step = array.step ? (row, value) => array.step(number * rows + row, value) : undefined;
  return { rows, columns, values: array.values.subarray(number * rows * columns, (number + 1) * rows * columns), step };
}

/** One row of a matrix, as a part of the same memory. */
export function rowOf({ columns, values }, number) {
  return values.subarray(number * columns, (number + 1) * columns);
}

/** Several (rows, columns) of a head each, side by side: (rows, heads * columns). */
export function sideBySide(array) {
  const [heads, rows, width] = array.shape;
  const values = new Float32Array(heads * rows * width);
  for (let head = 0; head < heads; head++) {
    for (let row = 0; row < rows; row++) {
      const start = (head * rows + row) * width;
      values.set(array.values.subarray(start, start + width), (row * heads + head) * width);
    }
  }
  return { rows, columns: heads * width, values };
}

/** The mean over several matrices. */
export function meanMatrix(arrays) {
  const [rows, columns] = arrays[0].shape.slice(-2);
  const size = rows * columns;
  const values = new Float32Array(size);
  let count = 0;
  for (const array of arrays) {
    for (let start = 0; start < array.values.length; start += size, count++) {
      for (let at = 0; at < size; at++) values[at] += array.values[start + at];
    }
  }
  return { rows, columns, values: values.map((value) => value / count) };
}

/** The sum of products of each row with each row. */
export function rowProducts({ rows, columns, values }) {
  const products = new Float32Array(rows * rows);
  for (let one = 0; one < rows; one++) {
    for (let other = 0; other < rows; other++) {
      let sum = 0;
      for (let at = 0; at < columns; at++) sum += values[one * columns + at] * values[other * columns + at];
      products[one * rows + other] = sum;
    }
  }
  return { rows, columns: rows, values: products, step: halfStep };
}

/** The share of numbers that are 0, in percent; of int8 some may be 0 by rounding alone. */
export function shareOfZeros({ values, step }) {
  let count = 0;
  for (const value of values) if (value === 0) count++;
  return `${step && step !== halfStep ? "≤ " : ""}${percent(count / values.length)}`;
}

/** The paper's sine and cosine table, for so many places. */
export function sinusoids(rows, columns) {
  const values = new Float32Array(rows * columns);
  for (let column = 0; column < columns; column++) {
    const speed = 10000 ** (-(column - (column % 2)) / columns);
    for (let row = 0; row < rows; row++) values[row * columns + column] = (column % 2 ? Math.cos : Math.sin)(row * speed);
  }
  return { rows, columns, values };
}

/** The smallest and the largest of many numbers. */
export function range(values) {
  return values.reduce(([least, most], value) => [Math.min(least, value), Math.max(most, value)], [Infinity, -Infinity]);
}

/** Mean and standard deviation of a row. */
export function meanAndSpread(row) {
  const mean = row.reduce((sum, value) => sum + value, 0) / row.length;
  const variance = row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / row.length;
  return [mean, Math.sqrt(variance)];
}

/** A number of a matrix to be read, with no more digits than it is stored with. */
export function readableIn({ columns, values, step }, row, column) {
  const value = values[row * columns + column];
  return readable(value, step ? digitsOf(step(row, value)) : DIGITS);
}

/** So many digits behind the point as a number has whose neighbours are a step away. */
export function digitsOf(step) {
  return Math.max(0, Math.min(DIGITS, Math.floor(-Math.log10(step) + 1e-9)));
}

/** The digits of a number with the sign of a minus; a zero has none. */
export function signed(digits) {
  return digits.replace(/^-(?=[0.]*$)/u, "").replaceAll("-", "−");
}

/** A number to be read, with at most three digits behind the point; -∞ for what a mask hides. */
export function readable(value, digits = DIGITS) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (value <= HIDDEN) return "−∞";
  const size = Math.abs(value);
  return signed(size !== 0 && size < NOTATION_FROM && digits === DIGITS ? value.toExponential(1) : value.toFixed(digits));
}

/** A number to be read, such as a score: two digits behind the point, "–" where there is none. */
export function decimal(value, digits = 2) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  return signed(value.toFixed(digits));
}

/** A whole number to be read, as both languages of the page write it, whatever the browser's own. */
export const whole = (number) => number.toLocaleString("en");

/** The probability of a logarithm; null where there is none. */
export function probability(logarithm) {
  return logarithm === null || logarithm === undefined ? null : Math.exp(logarithm);
}

/** A share of 1 in percent. */
export function percent(share) {
  if (share === null || share === undefined) return "–";
  const value = share * 100;
  return `${value >= 99.95 ? value.toFixed(0) : value >= 0.1 || value === 0 ? value.toFixed(1) : "<0.1"}%`;
}

function decodeEntry(entry, get) {
  if (entry.values) return entry; // of a model in the page itself (docs/web.md)
  if (entry.same_as) return get(entry.same_as);
  if (entry.sum_of) {
    const [one, other] = entry.sum_of.map(get);
    const step = one?.step || other?.step ? (row, value) => Math.max(one.step?.(row, value) ?? 0, other.step?.(row, value) ?? 0) : undefined;
    return one && other && { shape: one.shape, values: one.values.map((value, at) => value + other.values[at]), step };
  }
  if (entry.masked) {
    const [scores, mask] = entry.masked.map(get);
    if (!scores || !mask) return null;
    const size = mask.values.length;
    return {
      shape: scores.shape,
      values: scores.values.map((value, at) => (mask.values[at % size] ? value : HIDDEN)),
      step: scores.step,
    };
  }
  return { shape: entry.shape, values: decodeValues(entry), step: stepOf(entry) };
}

/** By how much the numbers of an entry differ at least; undefined where they are exact. */
function stepOf({ dtype, scales }) {
  if (dtype === "float16") return halfStep;
  if (dtype !== "int8") return undefined;
  const factors = new DataView(decodeBytes(scales).buffer);
  return (row) => factors.getFloat32(4 * row, true);
}

/** Between float16 of that size: ten bits behind the first. */
function halfStep(_, value) {
  return 2 ** (Math.floor(Math.log2(Math.max(Math.abs(value), 2 ** -14))) - 10);
}

function decodeValues({ dtype, shape, data, scales }) {
  const bytes = decodeBytes(data);
  if (dtype === "bool") return Float32Array.from(bytes);
  if (dtype === "float32") {
    const view = new DataView(bytes.buffer);
    return Float32Array.from({ length: bytes.length / 4 }, (_, at) => view.getFloat32(4 * at, true));
  }
  if (dtype === "float16") {
    halfTable ??= makeHalfTable();
    const values = new Float32Array(bytes.length / 2);
    for (let at = 0; at < values.length; at++) values[at] = halfTable[bytes[2 * at] | (bytes[2 * at + 1] << 8)];
    return values;
  }
  const whole = new Int8Array(bytes.buffer);
  const factors = new DataView(decodeBytes(scales).buffer);
  const width = shape.at(-1);
  const values = new Float32Array(whole.length);
  for (let start = 0, row = 0; start < whole.length; start += width, row++) {
    const factor = factors.getFloat32(4 * row, true);
    for (let at = start; at < start + width; at++) values[at] = whole[at] * factor;
  }
  return values;
}

/** Decodes base64. */
export function decodeBytes(text) {
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let at = 0; at < bytes.length; at++) bytes[at] = characters.charCodeAt(at);
  return bytes;
}

/** The value of each of the 65,536 float16. */
function makeHalfTable() {
  return Float32Array.from({ length: 65536 }, (_, bits) => {
    const sign = bits & 0x8000 ? -1 : 1;
    const exponent = (bits >> 10) & 31;
    const fraction = bits & 1023;
    if (exponent === 0) return sign * fraction * 2 ** -24;
    if (exponent === 31) return fraction ? NaN : sign * Infinity;
    return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
  });
}
