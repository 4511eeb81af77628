// Scaled dot-product attention (equation 1, Figure 2 left) and multi-head attention (section 3.2.2, Figure 2 right), as in
// model/attention.py. Heads stand side by side in rows of d_model, of one sentence; `seen` is told every number by its name
// (docs/record.md).

import { matrix } from "./matrices.js";

/** Stands for a score that a mask hides: the least number of float32. */
export const HIDDEN = -3.4028234663852886e38;

/** Attention(Q, K, V) = softmax(Q Kᵀ / sqrt(d_k)) V, equation 1, for every head.
 *
 * query: (query, d_model), key and value: (key, d_model), mask: (query, key) or null.
 * -> scores and weights (heads, query, key), and the heads' outputs side by side (query, d_model). A row whose keys are all
 * hidden has zero weights and zero output. */
export function attend(query, key, value, numHeads, mask = null) {
  const [queries, keys, dHead] = [query.rows, key.rows, query.columns / numHeads];
  const scores = new Float32Array(numHeads * queries * keys);
  const weights = new Float32Array(scores.length);
  const heads = matrix(queries, query.columns);
  for (let head = 0; head < numHeads; head++) {
    for (let row = 0; row < queries; row++) {
      const start = (head * queries + row) * keys;
      const visible = mask && mask.values.subarray(row * keys, (row + 1) * keys);
      scoreRow(query, key, row, head * dHead, dHead, scores.subarray(start, start + keys));
      softmax(scores.subarray(start, start + keys), visible, weights.subarray(start, start + keys));
      mixRow(weights.subarray(start, start + keys), value, head * dHead, dHead, heads, row);
    }
  }
  return { scores, weights, heads };
}

/** Q Kᵀ / sqrt(d_k) of one query of one head; first: where the head begins in its row. */
function scoreRow(query, key, row, first, dHead, scores) {
  const { columns: width, values: asks } = query;
  const answers = key.values;
  const scale = 1 / Math.sqrt(dHead);
  const from = row * width + first;
  for (let place = 0; place < scores.length; place++) {
    const to = place * width + first;
    let sum = 0;
    for (let at = 0; at < dHead; at++) sum += asks[from + at] * answers[to + at];
    scores[place] = sum * scale;
  }
}

function softmax(scores, visible, weights) {
  let most = -Infinity;
  for (let at = 0; at < scores.length; at++) if ((!visible || visible[at]) && scores[at] > most) most = scores[at];
  let total = 0;
  for (let at = 0; at < scores.length; at++) {
    weights[at] = !visible || visible[at] ? Math.exp(scores[at] - most) : 0;
    total += weights[at];
  }
  if (total > 0) for (let at = 0; at < weights.length; at++) weights[at] /= total;
}

function mixRow(weights, value, first, dHead, heads, row) {
  const { columns: width, values } = value;
  const mixed = heads.values;
  const to = row * width + first;
  for (let place = 0; place < weights.length; place++) {
    const weight = weights[place];
    const from = place * width + first;
    for (let at = 0; at < dHead; at++) mixed[to + at] += weight * values[from + at];
  }
}

/** (length, d_model) -> (heads, length, d_head) */
function splitHeads({ rows, columns, values }, numHeads) {
  const [dHead, split] = [columns / numHeads, new Float32Array(values.length)];
  for (let head = 0; head < numHeads; head++) {
    for (let row = 0; row < rows; row++) {
      const start = row * columns + head * dHead;
      split.set(values.subarray(start, start + dHead), (head * rows + row) * dHead);
    }
  }
  return split;
}

/** Several attentions side by side on slices of d_model / num_heads features, joined by an output layer. */
export class MultiHeadAttention {
  /** linear(name): the layer of that name. */
  constructor(name, linear, numHeads) {
    this.name = name;
    this.numHeads = numHeads;
    this.query = linear(`${name}.query`);
    this.key = linear(`${name}.key`);
    this.value = linear(`${name}.value`);
    this.output = linear(`${name}.output`);
    this.queryFactor = 1; // other than 1 and none by the edits of what_if.js alone
    this.headsOff = [];
  }

  /** query: (query, d_model), memory: (key, d_model), of which keys and values come, mask as in `attend`
   * -> (query, d_model) */
  forward(query, memory, mask, seen) {
    const queries = this.queries(query);
    const [keys, values] = this.remember(memory);
    const { scores, weights, heads } = attend(queries, keys, values, this.numHeads, mask);
    this.tell(seen, { queries, keys, values, scores, weights, heads, mask });
    return seen(`${this.name}.output`, this.join(heads));
  }

  /** The keys and values of a memory. (key, d_model) -> the same shape each */
  remember(memory) {
    return [this.key.forward(memory), this.value.forward(memory)];
  }

  /** x: (query, d_model) -> (query, d_model) */
  queries(x) {
    const queries = this.query.forward(x);
    if (this.queryFactor !== 1) queries.values.forEach((value, at, all) => (all[at] = value * this.queryFactor));
    return queries;
  }

  /** The heads side by side through the output layer; those that are off give nothing. */
  join(heads) {
    const [width, given] = [heads.columns / this.numHeads, matrix(heads.rows, heads.columns, heads.values.slice())];
    for (const head of this.headsOff) {
      for (let row = 0; row < given.rows; row++) given.values.fill(0, row * given.columns + head * width, row * given.columns + (head + 1) * width);
    }
    return this.output.forward(given);
  }

  tell(seen, { queries, keys, values, scores, weights, heads, mask }) {
    if (!seen.wanted) return;
    const { name, numHeads } = this;
    const split = (one) => splitHeads(one, numHeads);
    const [byHead, pairs] = [(one) => [numHeads, one.rows, one.columns / numHeads], [numHeads, queries.rows, keys.rows]];
    if (mask) seen.array(`${name}.mask`, mask.values, [mask.rows, mask.columns], "bool");
    seen.array(`${name}.queries`, split(queries), byHead(queries));
    seen.array(`${name}.keys`, split(keys), byHead(keys));
    seen.array(`${name}.values`, split(values), byHead(values));
    seen.array(`${name}.scores`, scores, pairs);
    seen.array(`${name}.masked_scores`, mask ? hidden(scores, mask.values) : scores, pairs);
    seen.array(`${name}.weights`, weights, pairs);
    seen.array(`${name}.heads`, split(heads), byHead(heads));
  }
}

/** scores: (heads, query, key), mask: (query, key) */
function hidden(scores, mask) {
  return scores.map((score, at) => (mask[at % mask.length] ? score : HIDDEN));
}
