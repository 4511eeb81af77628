// Terms of the field, explained where they stand in a text: on hover, on focus.

import { make } from "./elements.js";

const TERMS = ["eos", "token", "embedding", "logit", "softmax", "entropy", "attention", "head", "query", "key", "value", "mask", "residual", "encoder", "decoder", "beam"];

const patterns = new WeakMap();

/** A text as a list of texts and elements: the first of each term in it explains itself. */
export function termed(say, text) {
  if (!patterns.has(say)) patterns.set(say, patternOf(say));
  const { terms, pattern } = patterns.get(say);
  const seen = new Set();
  return text.split(pattern).map((part, at) => {
    const term = at % 2 ? terms.get(part.toLowerCase()) : null;
    if (!term || seen.has(term)) return part;
    seen.add(term);
    return make("span", { class: "term", tabindex: 0 }, part, make("span", { class: "explained", role: "tooltip" }, say(`about_${term}`)));
  });
}

/** A pattern of the terms of a language, and the term of each word. */
function patternOf(say) {
  const words = TERMS.flatMap((term) => say(`term_${term}`).split("|").map((word) => [word.toLowerCase(), term]));
  const longest = words.map(([word]) => word.replace(/[.*+?^${}()|[\]\\]/gu, "\\$&")).toSorted((one, other) => other.length - one.length);
  return { terms: new Map(words), pattern: new RegExp(`(?<![\\p{L}])(${longest.join("|")})(?![a-z])`, "iu") };
}
