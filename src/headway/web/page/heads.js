// What a head does, in numbers: where it looks, and how sharply, as in insight/heads.py. docs/record.md defines the measures.

/** A kind of attention: weights of each layer, of shape (heads, query, key). -> of each target token its source token. */
export function alignment(layers) {
  const [, queries, keys] = layers[0].shape;
  return largestOfRows(summed(layers), queries, keys);
}

/** For each layer and head; of cross-attention by the alignment of all other heads. kind: "encoder", "decoder" or "cross" */
export function measureHeads(kind, layers) {
  const [heads, queries, keys] = layers[0].shape;
  const control = kind === "decoder" ? 0 : keys - 1;
  const places = Array.from({ length: queries }, (_, query) => query);
  const slope = (keys - 1) / Math.max(queries - 1, 1);
  const total = kind === "cross" ? summed(layers) : null;
  const alone = layers.length * heads === 1;
  return layers.map(({ values }) =>
    Array.from({ length: heads }, (_, head) => {
      const weights = values.subarray(head * queries * keys, (head + 1) * queries * keys);
      const centre = total ? largestOfRows(alone ? total : total.map((sum, at) => sum - weights[at]), queries, keys) : places;
      const meanAt = (move) => meanWeight(weights, keys, centre.map((key) => key + move));
      return {
        previous: meanAt(-1),
        next: meanAt(1),
        control: meanWeight(weights, keys, centre.map(() => control)),
        entropy: entropyOf(weights) / queries,
        same: total ? null : meanAt(0),
        aligned: total ? meanAt(0) : null,
        diagonal: total ? meanWeight(weights, keys, places.map((query) => Math.floor(query * slope + 0.5))) : null,
      };
    }),
  );
}

/** The sum of all heads of all layers: (query, key) */
function summed(layers) {
  const [heads, queries, keys] = layers[0].shape;
  const size = queries * keys;
  const sums = new Float64Array(size);
  for (const { values } of layers) {
    for (let head = 0; head < heads; head++) for (let at = 0; at < size; at++) sums[at] += values[head * size + at];
  }
  return sums;
}

/** The key of each query with the largest sum; <eos>, which stands last, is none. */
function largestOfRows(sums, queries, keys) {
  const candidates = keys > 1 ? keys - 1 : 1;
  return Array.from({ length: queries }, (_, query) => {
    const row = sums.subarray(query * keys, query * keys + candidates);
    return row.indexOf(Math.max(...row));
  });
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
