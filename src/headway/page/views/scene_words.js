// Explains in numbers how a number of an attention was computed.

import { make } from "./elements.js";
import { digitsOf, HIDDEN, signed } from "./numbers.js";
import { chip, phrase } from "./phrases.js";

const SHOWN = 2; // products of a sum that are written before the dots

/** at: {part, row, column}. -> elements */
export function toldOf(say, attention, { part, row, column }) {
  const { rowNames, columnNames } = attention;
  const query = chip(rowNames?.[row] ?? `${row + 1}`, "asking");
  const key = (number) => chip(columnNames?.[number] ?? `${number + 1}`, "answering");
  if (part === "scores" || part === "weights") {
    return [make("p", {}, phrase(say, "asks", { query, key: key(column) })), chain(say, attention, row, column)];
  }
  if (part === "output") {
    const { weights, values, output } = attention;
    const products = pairs(weights.columns, (at) => [share(number(weights, row, at)), written(values, at, column)]);
    return [make("p", {}, phrase(say, "mixes", { query, number: `${column + 1}` })), make("p", { class: "chain" }, sum(products), equals(written(output, row, column)))];
  }
  const [matrix, name, token] = { queries: ["queries", "Q", query], keys: ["keys", "K", key(column)], values: ["values", "V", key(row)] }[part];
  const [line, place] = part === "keys" ? [column, row] : [row, column];
  return [make("p", {}, phrase(say, "numberOf", { name, token, number: `${place + 1}` }), make("b", { class: "value" }, ` ${written(attention[matrix], line, place)}`))];
}

/** From the products of query and key to the share. */
function chain(say, attention, row, column) {
  const { queries, keys, products, scaled, masked, weights, width, scaling } = attention;
  const score = number(masked, row, column);
  const parts = [
    sum(pairs(width, (at) => [written(queries, row, at), written(keys, column, at)])),
    equals(written(products, row, column)),
    scaling ? link(`÷ √${width}`, written(scaled, row, column)) : null,
    score <= HIDDEN ? link(say("hiddenByMask"), "−∞") : null,
    link("softmax", share(number(weights, row, column)), "share"),
  ];
  return make("p", { class: "chain", dir: "ltr" }, parts.filter((one) => one));
}

const number = ({ columns, values }, row, column) => values[row * columns + column];
const equals = (text) => make("span", {}, "= ", make("b", { class: "value" }, text));

/** A number of a matrix, with no more digits than it is stored with. */
function written(matrix, row, column) {
  const value = number(matrix, row, column);
  return short(value, matrix.step ? digitsOf(matrix.step(row, value)) : undefined);
}
const link = (name, value, look = "") => make("span", {}, make("i", {}, `${name} `), "= ", make("b", { class: `value ${look}`.trim() }, value));
const pairs = (count, pair) => Array.from({ length: count }, (_, at) => pair(at));

/** Products of two texts each, added: the first, and the last where there are many. */
function sum(products) {
  const texts = products.map(([one, other]) => `${one} × ${inBrackets(other)}`);
  const few = texts.length <= SHOWN + 2 ? texts : [...texts.slice(0, SHOWN), "…", texts.at(-1)];
  return make("span", { class: "sum" }, few.join(" + "));
}

/** A number as it is written in a sum: two or three digits that count, at most so many behind the point. */
export function short(value, most = 2) {
  if (value <= HIDDEN) return "−∞";
  const size = Math.abs(value);
  const digits = Math.min(most, size >= 100 ? 0 : size >= 10 ? 1 : 2);
  if (size >= 1e6) return signed(value.toExponential(1));
  return signed(Number.isInteger(value) ? `${value}` : value.toFixed(digits));
}

/** A share, with digits enough to tell it from none. */
export function share(value) {
  return value !== 0 && value < 0.005 ? "<0.01" : value.toFixed(2);
}

const inBrackets = (text) => (text.startsWith("−") ? `(${text})` : text);
