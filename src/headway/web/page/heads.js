// What a head does, in numbers: where it looks, and how sharply, as in insight/heads.py. docs/record.md defines the measures.

/** A kind of attention: weights of each layer, of shape (heads, query, key). -> of each target token its source token. */
export function alignment(layers) {
  const [heads, queries, keys] = layers[0].shape;
  const candidates = keys > 1 ? keys - 1 : 1; // <eos> stands last
  return Array.from({ length: queries }, (_, query) => {
    const sums = new Float64Array(candidates);
    for (const { values } of layers) {
      for (let head = 0; head < heads; head++) {
        const start = (head * queries + query) * keys;
        for (let key = 0; key < candidates; key++) sums[key] += values[start + key];
      }
    }
    return sums.indexOf(Math.max(...sums));
  });
}

/** For each layer and head. kind: "encoder", "decoder" or "cross" */
export function measureHeads(kind, layers) {
  const [heads, queries, keys] = layers[0].shape;
  const centre = kind === "cross" ? alignment(layers) : Array.from({ length: queries }, (_, query) => query);
  const control = kind === "decoder" ? 0 : keys - 1;
  return layers.map(({ values }) =>
    Array.from({ length: heads }, (_, head) => {
      const weights = values.subarray(head * queries * keys, (head + 1) * queries * keys);
      const meanAt = (move) => meanWeight(weights, keys, centre.map((key) => key + move));
      return {
        previous: meanAt(-1),
        next: meanAt(1),
        control: meanWeight(weights, keys, centre.map(() => control)),
        entropy: entropyOf(weights) / queries,
        same: kind === "cross" ? null : meanAt(0),
        aligned: kind === "cross" ? meanAt(0) : null,
      };
    }),
  );
}

/** The mean weight that each query gives to its key, of those whose key exists. weights: (query, key) */
function meanWeight(weights, keys, wanted) {
  const found = wanted.flatMap((key, query) => (key >= 0 && key < keys ? [weights[query * keys + key]] : []));
  return found.length ? found.reduce((sum, weight) => sum + weight, 0) / found.length : 0;
}

/** Of all rows together, in bits. */
function entropyOf(weights) {
  let sum = 0;
  for (const weight of weights) if (weight > 0) sum -= weight * Math.log2(weight);
  return sum;
}
