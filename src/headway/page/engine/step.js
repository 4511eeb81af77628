// One position through the decoder, with everything that earlier positions left, as in decoding/step.py: the same numbers
// as `Transformer.decode` gives for the last position (a test holds them equal). The hypotheses of a sentence share the
// products with the weights; each asks its own past, and all ask the same memory.

import { attend } from "./attention.js";
import { matrix, rowOf } from "./matrices.js";
import { unseen } from "./recording.js";

const GROWTH = 32;

export class DecoderStep {
  constructor(model) {
    this.model = model;
  }

  /** memory: (source length, d_model), memoryMask: (1, source length) -> the state of one hypothesis that has read nothing */
  start(memory, memoryMask) {
    const { layers } = this.model.decoder;
    return {
      memory: layers.map((layer) => layer.crossAttention.remember(memory)), // keys and values of each layer
      memoryMask,
      caches: [layers.map(() => new Cache(memory.columns))], // of each hypothesis, by layer
      length: 0, // positions that every hypothesis has read
    };
  }

  /** tokens: one for each hypothesis -> hidden states (hypotheses, d_model); the state has one position more. */
  step(state, tokens) {
    const { targetEmbedding, targetPositions, decoder } = this.model;
    const position = targetPositions.forward(1, state.length).values;
    let x = targetEmbedding.forward(tokens, unseen);
    x.values.forEach((value, at) => (x.values[at] = value + position[at % position.length]));
    state.length += 1;
    decoder.layers.forEach((layer, index) => (x = this.layer(x, layer, state, index)));
    return decoder.norm ? decoder.norm.forward(x) : x;
  }

  /** Keeps the hypotheses with these numbers, in this order; one may be kept several times. */
  select(state, rows) {
    const taken = new Set();
    state.caches = rows.map((row) => {
      const fresh = !taken.has(row);
      taken.add(row);
      return fresh ? state.caches[row] : state.caches[row].map((cache) => cache.copy());
    });
  }

  layer(x, layer, state, index) {
    const attendToSelf = (y) => {
      const { selfAttention: attention } = layer;
      const queries = attention.queries(y);
      const [keys, values] = attention.remember(y);
      const heads = matrix(y.rows, y.columns);
      state.caches.forEach((caches, row) => {
        caches[index].add(rowOf(keys, row), rowOf(values, row));
        const own = attend(matrix(1, y.columns, rowOf(queries, row)), caches[index].keys, caches[index].values, attention.numHeads);
        heads.values.set(own.heads.values, row * y.columns);
      });
      return attention.join(heads);
    };
    const attendToMemory = (y) => {
      const { crossAttention: attention } = layer;
      const mask = matrix(y.rows, state.memoryMask.columns, repeated(state.memoryMask.values, y.rows));
      return attention.join(attend(attention.queries(y), ...state.memory[index], attention.numHeads, mask).heads);
    };
    x = layer.selfResidual.forward(x, attendToSelf, unseen);
    x = layer.crossResidual.forward(x, attendToMemory, unseen);
    return layer.feedForwardResidual.forward(x, (y) => layer.feedForward.forward(y, unseen), unseen);
  }
}

/** The keys and values of one hypothesis in one layer. */
class Cache {
  constructor(width, length = 0, room = GROWTH) {
    this.width = width;
    this.length = length;
    this.memory = [new Float32Array(room * width), new Float32Array(room * width)];
  }

  get keys() {
    return matrix(this.length, this.width, this.memory[0].subarray(0, this.length * this.width));
  }

  get values() {
    return matrix(this.length, this.width, this.memory[1].subarray(0, this.length * this.width));
  }

  add(key, value) {
    const end = this.length * this.width;
    if (end === this.memory[0].length) this.memory = this.memory.map((old) => grown(old, end + Math.max(GROWTH * this.width, end)));
    this.memory[0].set(key, end);
    this.memory[1].set(value, end);
    this.length += 1;
  }

  copy() {
    const copied = new Cache(this.width, this.length, 0);
    copied.memory = this.memory.map((one) => one.slice());
    return copied;
  }
}

function grown(old, size) {
  const memory = new Float32Array(size);
  memory.set(old);
  return memory;
}

function repeated(values, count) {
  const all = new Uint8Array(values.length * count);
  for (let row = 0; row < count; row++) all.set(values, row * values.length);
  return all;
}
