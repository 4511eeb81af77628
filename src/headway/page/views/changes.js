// Finds the words in which two texts differ.

/** The places in `now` of the longest run of words that both lists have in the same order. */
export function unchangedPlaces(old, now) {
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
