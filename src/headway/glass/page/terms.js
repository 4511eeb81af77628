// Terms of the field, explained where they stand in a text: on hover, on focus.

import { make } from "./elements.js";

const TERMS = ["eos", "token", "embedding", "logit", "softmax", "entropy", "attention", "head", "query", "key", "value", "mask", "residual", "encoder", "decoder", "beam"];

/** A text as a list of texts and elements: the first of each term in it explains itself. */
export function termed(say, text) {
  const words = TERMS.flatMap((term) => say(`term_${term}`).split("|").map((word) => [word, term]));
  const longest = words.toSorted((one, other) => other[0].length - one[0].length);
  const terms = new Map(longest.map(([word, term]) => [word.toLowerCase(), term]));
  const pattern = new RegExp(`(?<![\\p{L}])(${longest.map(([word]) => word.replace(/[.*+?^${}()|[\]\\]/gu, "\\$&")).join("|")})(?![a-z])`, "iu");
  const seen = new Set();
  return text.split(pattern).map((part, at) => {
    const term = at % 2 ? terms.get(part.toLowerCase()) : null;
    if (!term || seen.has(term)) return part;
    seen.add(term);
    return make("span", { class: "term", tabindex: 0 }, part, make("span", { class: "explained", role: "tooltip" }, say(`about_${term}`)));
  });
}
