// Translations word by word, each word above bars of its probability.

import { unchangedPlaces } from "./changes.js";
import { make } from "./elements.js";
import { percent, probability } from "./numbers.js";
import { visible, wordsOf } from "./tokens.js";

/** The words of a record's translation: {text, probability}, without <eos>. */
export function targetWords({ target, steps }) {
  const words = wordsOf(target).slice(0, -1);
  return words.map(({ text, places }) => ({
    text,
    probability: probability(places.reduce((sum, place) => sum + steps[place].log_probability, 0)),
  }));
}

/** words: {text, probability}. Options: kind of the bars ("before" or "after"); now: of each word the probability after a
 * change, as a second bar; since: the words of an earlier translation, so that those that it doesn't have are marked. */
export function wordBars(words, { kind = "after", now = null, since = null } = {}) {
  const known = since && unchangedPlaces(since.map(({ text }) => text), words.map(({ text }) => text));
  return make(
    "span",
    { class: "word-bars", dir: "auto" },
    words.map(({ text, probability: share }, place) => [
      make(
        "span",
        { class: "word-bar" },
        make("bdi", {}, known && !known.has(place) ? make("mark", {}, visible(text)) : visible(text)),
        bar(kind, share),
        now ? bar("after", now[place]) : null,
      ),
      " ",
    ]).flat(),
  );
}

function bar(kind, share) {
  const track = make("span", { class: `bar ${kind}` });
  track.style.setProperty("--share", (share ?? 0).toFixed(4));
  return make("span", { class: "with-number" }, track, make("span", { class: "number" }, percent(share)));
}
