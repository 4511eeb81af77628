// Greedy search over an engine, on ids alone, as in decoding/greedy_search.py, of one sentence.

import { forbidden } from "./constraints.js";
import { likeliest } from "./matrices.js";

/** Takes the likeliest token at each step until <eos>, or until there are `maxLength` tokens and <eos> is not the next;
 * <eos> is never the first.
 *
 * source: ids with <eos> -> {ids, score, stopped}: ids without <eos>, the total log-probability with it, and "eos" or
 * "max_length". */
export function greedy(engine, source, maxLength, noRepeatNgram = 0) {
  const state = engine.start(source);
  const ids = [];
  let score = 0;
  for (;;) {
    const { values } = engine.step(state, [ids.at(-1) ?? engine.bosId]);
    for (const id of forbidden(ids, engine.eosId, noRepeatNgram)) values[id] = -Infinity;
    const [token] = likeliest(values, 1);
    if (token === engine.eosId) return { ids, score: score + values[token], stopped: "eos" };
    if (ids.length === maxLength) return { ids, score: score + values[engine.eosId], stopped: "max_length" };
    ids.push(token);
    score += values[token];
  }
}
