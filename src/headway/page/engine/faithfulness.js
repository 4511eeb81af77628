// Whether an attribution names what the model needs, as in insight/analyses/faithfulness.py: the source's tokens are erased
// in its order, and the probability of each token of the translation is read again.

import { rowOf } from "./matrices.js";

const RANDOM_ORDERS = 3;

/** attributions: by name, each (target, source); foils: an id for each step.
 * -> {erased, probability, against_foil}, each of the last two with {curves, areas} by name */
export function faithfulness(reading, { whole, without }, attributions, foils) {
  const counts = countsOf(reading.words);
  const [first, last] = [whole, without].map((logarithms) => mean(foils.map((foil, step) => pairOf(reading, step, rowOf(logarithms, step), foil))));
  const orders = Object.fromEntries(Object.entries(attributions).map(([name, one]) => [name, [rankedBy(reading, one)]]));
  const chance = generator();
  orders.random = Array.from({ length: RANDOM_ORDERS }, () => foils.map(() => shuffled(reading.words, chance)));
  const found = Object.entries(orders).map(([name, some]) => {
    const between = counts.slice(1, -1).map((count) => mean(some.map((order) => erasedAt(reading, order, count, foils))));
    return [name, [first, ...between, last]];
  });
  const part = (at) => {
    const curves = Object.fromEntries(found.map(([name, points]) => [name, points.map((point) => point[at])]));
    const area = (curve) => curve.slice(1).reduce((sum, value) => sum + value, 0) / (curve.length - 1);
    return { curves, areas: Object.fromEntries(Object.entries(curves).map(([name, curve]) => [name, area(curve)])) };
  };
  return { erased: counts, probability: part(0), against_foil: part(1) };
}

/** 0, 1, 2, 4, 8, ... and all. */
function countsOf(words) {
  const counts = [0];
  for (let count = 1; count < words; count *= 2) counts.push(count);
  return [...counts, words];
}

/** Erases `count` tokens in the order of each step. -> the mean of [p(token), p(token) against its foil] */
function erasedAt(reading, order, count, foils) {
  return mean(
    foils.map((foil, step) => pairOf(reading, step, reading.logarithmsOf(step, reading.memory(order[step].slice(0, count))), foil)),
  );
}

function pairOf({ given }, step, logarithms, foil) {
  const [token, other] = [Math.exp(logarithms[given[step]]), Math.exp(logarithms[foil])];
  return [token, token / (token + other)];
}

/** For each step the source's tokens but <eos>, the most needed first. */
function rankedBy({ words, given }, attribution) {
  const places = Array.from({ length: words }, (_, place) => place);
  return given.map((_, step) => places.toSorted((one, other) => rowOf(attribution, step)[other] - rowOf(attribution, step)[one]));
}

function shuffled(count, chance) {
  const places = Array.from({ length: count }, (_, place) => place);
  for (let at = count - 1; at > 0; at--) {
    const other = Math.floor(chance() * (at + 1));
    [places[at], places[other]] = [places[other], places[at]];
  }
  return places;
}

/** Mulberry32: the same numbers from 0 to 1 every time. */
function generator(seed = 1) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

function mean(pairs) {
  return [0, 1].map((at) => pairs.reduce((sum, pair) => sum + pair[at], 0) / pairs.length);
}
