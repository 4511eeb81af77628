// Sampling as `draw_tokens` in decoding/greedy_search.py does it: temperature, then top-k, then top-p.

/** logits: of every token of the vocabulary. -> {ids, logits}, likeliest first */
export function ranked(logits) {
  const ids = Uint32Array.from(logits, (_, id) => id).sort((one, other) => logits[other] - logits[one]);
  return { ids, logits: Float64Array.from(ids, (id) => logits[id]) };
}

/** The probability of each of the ranked tokens; 0 for one that is cut. topK: 0 keeps all; topP: 1 keeps all. */
export function sampled({ logits }, { temperature, topK, topP }) {
  const shares = scaled(logits.map((logit) => Math.exp((logit - logits[0]) / temperature)));
  let before = 0;
  const kept = shares.map((share, place) => {
    const stays = (topK === 0 || place < topK) && (topP === 1 || before < topP);
    before += share;
    return stays ? share : 0;
  });
  return scaled(kept);
}

/** The place that is drawn; chance: uniform in [0, 1). Never one of probability 0. */
export function drawn(probabilities, chance) {
  let [sum, last] = [0, 0];
  for (let place = 0; place < probabilities.length; place++) {
    if (probabilities[place] === 0) continue;
    sum += probabilities[place];
    if (chance < sum) return place;
    last = place;
  }
  return last;
}

/** In bits. */
export function entropy(probabilities) {
  return probabilities.reduce((sum, share) => (share > 0 ? sum - share * Math.log2(share) : sum), 0);
}

/** With the sum 1. */
function scaled(weights) {
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return weights.map((weight) => weight / sum);
}
