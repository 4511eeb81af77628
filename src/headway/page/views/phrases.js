// Sentences with words of the model's in them: each in a frame of its own, so that none of it reads as the page's own.

import { make } from "./elements.js";
import { percent } from "./numbers.js";
import { brief } from "./tokens.js";

/** A word or token within a sentence. look: a class beside. */
export function chip(text, look = "") {
  return make("bdi", { class: `chip ${look}`.trim() }, brief(text, 24));
}

/** The text of that name as a list of texts and elements. values: by name a text, an element, or a list of them. */
export function phrase(say, name, values) {
  return say(name)
    .split(/(\{\w+\})/u)
    .flatMap((part) => (/^\{\w+\}$/u.test(part) ? (values[part.slice(1, -1)] ?? part) : part));
}

/** Elements or texts, or lists of them, one after the other with commas between. */
export function listed(parts) {
  return parts.flatMap((part, at) => (at ? [", ", part] : [part]).flat());
}

/** Words or tokens, each with its share. shares: [text, share] */
export function withShares(shares) {
  return listed(shares.map(([text, share]) => make("span", { class: "named" }, chip(text), ` ${percent(share)}`)));
}
