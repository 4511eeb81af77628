// Forbids repetitions, and an end before the first token, by log-probabilities of -infinity, as in
// decoding/constraints.py.

/** The ids that `given` must not go on with: <eos> as the first token, and what would complete an n-gram that it already
 * has. n: 0 for none. */
export function forbidden(given, eosId, n) {
  return given.length ? repeats(given, n) : [eosId];
}

function repeats(given, n) {
  const found = [];
  if (n === 0 || given.length < n) return found;
  const last = given.slice(given.length - n + 1);
  for (let start = 0; start + n <= given.length; start++) {
    if (last.every((id, at) => id === given[start + at])) found.push(given[start + n - 1]);
  }
  return found;
}
