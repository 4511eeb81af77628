// Measures which source tokens the translation needs, as in insight/analyses/erasure.py: each is erased by itself.

import { ofTokens } from "./engine.js";
import { likeliest, matrix, rowOf } from "./matrices.js";

const [NEED, DETACHED] = [0.1, 2]; // nats

/** Every reading that both analyses need, made once: with nothing, with all words, with each token erased. */
export function erasedReadings(reading) {
  const erased = (tokens) => reading.logarithms(reading.memory(tokens));
  const words = Array.from({ length: reading.words }, (_, token) => token);
  return { whole: erased([]), without: erased(words), each: reading.source.map((_, token) => erased([token])) };
}

/** -> {needs, gain, mean_gain, detached, effect}; effect: (target, source) */
export function erasure(reading, { whole, without, each }) {
  const given = (logarithms) => ofTokens(logarithms, reading.given);
  const full = given(whole);
  const effect = losses(full, each.map(given));
  const gain = given(without).map((value, step) => full[step] - value);
  const counted = gain.length > 1 ? gain.slice(0, -1) : gain;
  const mean_gain = counted.reduce((sum, value) => sum + value, 0) / counted.length;
  return { needs: full.map((_, step) => needed(rowOf(effect, step))), gain, mean_gain, detached: mean_gain < DETACHED, effect };
}

/** chosen: ids of foils by step; of other steps it is the likeliest other token. -> {foils, difference, erasure} */
export function contrast(reading, { whole, each }, chosen = new Map()) {
  const foils = reading.given.map((token, step) => chosen.get(step) ?? likeliest(rowOf(whole, step), 2).find((id) => id !== token));
  const difference = (logarithms) => {
    const against = ofTokens(logarithms, foils);
    return ofTokens(logarithms, reading.given).map((value, step) => value - against[step]);
  };
  const full = difference(whole);
  return { foils, difference: full, erasure: losses(full, each.map(difference)) };
}

/** full: of each step; without: the same with each token erased. -> (target, source) */
function losses(full, without) {
  const found = matrix(full.length, without.length);
  full.forEach((value, step) => without.forEach((other, token) => (rowOf(found, step)[token] = value - other[step])));
  return found;
}

/** The token other than <eos>, the last, that costs most; null where none costs much. */
function needed(row) {
  const words = row.subarray(0, -1);
  const most = Math.max(...words);
  return words.length && most >= NEED ? words.indexOf(most) : null;
}
