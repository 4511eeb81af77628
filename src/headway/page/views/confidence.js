// The model's confidence and attention by word, from the pieces of the record.

import { meanAttention } from "./attention_of_head.js";
import { probability } from "./numbers.js";
import { wordsOf } from "./tokens.js";

/** The probability of a word of the target: the product of its pieces'; null where one of them isn't known. */
export function wordConfidence(record, word) {
  const shares = word.places.map((place) => probability(record.steps[place]?.log_probability));
  return shares.includes(null) ? null : shares.reduce((product, share) => product * share, 1);
}

/** The geometric mean of the probabilities of its tokens. */
export function meanShare({ target, steps }) {
  return target.score === null ? null : Math.exp(target.score / steps.length);
}

/**
 * What words of the target looked at among the words of the source: the mean of all layers and heads, summed over the
 * pieces of a source word, averaged over those of a target word. -> {source, target, share(target, source)}, with
 * share null where the record has no weights.
 */
export function lookedAt(glass) {
  const [source, target] = [wordsOf(glass.record.source), wordsOf(glass.record.target)];
  const mean = meanAttention(glass, "cross");
  if (!mean) return { source, target, share: null };
  const { columns, values } = mean;
  const share = (to, from) => {
    let sum = 0;
    for (const row of target[to].places) for (const column of source[from].places) sum += values[row * columns + column];
    return sum / target[to].places.length;
  };
  return { source, target, share };
}
