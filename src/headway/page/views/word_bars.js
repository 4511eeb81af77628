// Translations word by word, each word above bars of its probability.

import { wordConfidence } from "./confidence.js";
import { make } from "./elements.js";
import { percent } from "./numbers.js";
import { visible, wordsOf } from "./tokens.js";

/** The words of a record's translation: {text, probability}, without <eos>. */
export function targetWords(record) {
  return wordsOf(record.target).slice(0, -1).map((word) => ({ text: word.text, probability: wordConfidence(record, word) }));
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
  const track = make("span", { class: `bar ${kind}`, "--share": (share ?? 0).toFixed(4) });
  return make("span", { class: "with-number" }, track, make("span", { class: "number" }, percent(share)));
}

/** The places in `now` of the longest run of words that both lists have in the same order. */
function unchangedPlaces(old, now) {
  const length = Array.from({ length: old.length + 1 }, () => new Uint16Array(now.length + 1));
  for (let one = old.length - 1; one >= 0; one--) {
    for (let other = now.length - 1; other >= 0; other--) {
      const same = old[one] === now[other];
      length[one][other] = same ? length[one + 1][other + 1] + 1 : Math.max(length[one + 1][other], length[one][other + 1]);
    }
  }
  const places = new Set();
  for (let one = 0, other = 0; one < old.length && other < now.length; ) {
    if (old[one] === now[other]) {
      places.add(other);
      one++;
      other++;
    } else if (length[one + 1][other] >= length[one][other + 1]) one++;
    else other++;
  }
  return places;
}
