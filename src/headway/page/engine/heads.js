// Measures of heads: where they attend, and how sharply, as in insight/maps.py. docs/record.md defines them.

/** layers: weights of each layer, of shape (heads, query, key), <eos> last; aligner: as storage/model_info.py has it; without:
 * the layer and the number of a head that has no say, or null; first: the first source token that others may be aligned
 * with. -> of each target token its source token; null: it is aligned with nothing */
export function alignment(layers, { layer, head, shifted, eos_is_nothing: eosIsNothing }, { without = null, first = 0 }) {
  const [count, queries, keys] = layers[0].shape;
  const length = Math.max(keys - 1, 1); // a source of <eos> alone is aligned with it
  const candidates = Math.min(length + (eosIsNothing ? 1 : 0), keys);
  const all = layers.flatMap((_, one) => Array.from({ length: count }, (_, other) => [one, other]));
  const chosen = ([one, other]) => (layer === null || one === layer) && (head === null || other === head);
  const others = all.filter(([one, other]) => one !== without?.[0] || other !== without[1]);
  const heads = [others.filter(chosen), others, all].find((some) => some.length); // a head without others by itself
  return Array.from({ length: queries }, (_, number) => {
    const query = shifted ? Math.min(number + 1, queries - 1) : number; // no step reads the target's <eos>
    const sums = new Float64Array(candidates);
    for (const [one, other] of heads) {
      const start = (other * queries + query) * keys;
      for (let key = 0; key < candidates; key++) sums[key] += layers[one].values[start + key];
    }
    sums.fill(-1, 0, first);
    const place = sums.indexOf(Math.max(...sums));
    return place < length ? place : null;
  });
}

/** For each layer and head; of cross-attention by the alignment of the others. kind: "encoder", "decoder" or "cross" */
export function measureHeads(kind, layers, aligner) {
  const [heads, queries, keys] = layers[0].shape;
  const control = kind === "decoder" ? 0 : keys - 1;
  const places = Array.from({ length: queries }, (_, query) => query);
  const slope = (keys - 1) / Math.max(queries - 1, 1);
  const cross = kind === "cross";
  return layers.map(({ values }, layer) =>
    Array.from({ length: heads }, (_, head) => {
      const weights = values.subarray(head * queries * keys, (head + 1) * queries * keys);
      const centre = cross ? alignment(layers, aligner, { without: [layer, head] }) : places;
      const received = Array.from({ length: keys }, (_, key) => meanWeight(weights, keys, centre.map(() => key)));
      const others = received.with(control, -1);
      const favourite = keys > 1 ? others.indexOf(Math.max(...others)) : null;
      const meanAt = (move) => meanWeight(weights, keys, centre.map((key) => (key === null ? -1 : key + move)));
      return {
        previous: meanAt(-1),
        next: meanAt(1),
        control: received[control],
        entropy: entropyOf(weights) / queries,
        favourite: received[favourite] ?? 0,
        favourite_key: favourite,
        same: cross ? null : meanAt(0),
        aligned: cross ? meanAt(0) : null,
        diagonal: cross ? meanWeight(weights, keys, places.map((query) => Math.floor(query * slope + 0.5))) : null,
      };
    }),
  );
}

/** The mean weight that each query gives to its key, of those whose key exists. weights: (query, key) */
function meanWeight(weights, keys, wanted) {
  const found = wanted.flatMap((key, query) => (key >= 0 && key < keys ? [weights[query * keys + key]] : []));
  return found.length ? found.reduce((sum, weight) => sum + weight, 0) / found.length : 0;
}

/** The mean entropy of all rows, in bits. */
function entropyOf(weights) {
  let sum = 0;
  for (const weight of weights) if (weight > 0) sum -= weight * Math.log2(weight);
  return sum;
}
