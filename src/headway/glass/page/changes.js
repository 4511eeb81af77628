// Which words of two texts differ.

import { make } from "./elements.js";
import { visible } from "./tokens.js";

/** The text `after`, with the words marked that `before` doesn't have in that order. */
export function markedChanges(before, after) {
  const [old, now] = [before.split(" "), after.split(" ")];
  const kept = commonPlaces(old, now);
  return make(
    "bdi",
    {},
    now.flatMap((word, place) => [place ? " " : "", kept.has(place) ? visible(word) : make("mark", {}, visible(word))]),
  );
}

/** The places in `now` of the longest run of words that both have in the same order. */
function commonPlaces(old, now) {
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
