// The layers of section 3.1 and 3.3, as in model/layers.py: position-wise feed-forward, residual connection with layer
// normalisation, encoder layer and decoder layer. Nothing is trained here, so there is no dropout.

import { MultiHeadAttention } from "./attention.js";
import { matrix, sumOf } from "./matrices.js";

export const EPSILON = 1e-5; // as torch's LayerNorm

const ACTIVATIONS = {
  relu: (x) => Math.max(0, x),
  gelu: (x) => (x / 2) * (1 + erf(x / Math.SQRT2)),
  swish: (x) => x / (1 + Math.exp(-x)),
};

/** Abramowitz and Stegun 7.1.26; the error is at most 1.5e-7. */
function erf(x) {
  const t = 1 / (1 + 0.3275911 * Math.abs(x));
  const series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  return Math.sign(x) * (1 - series * Math.exp(-x * x));
}

/** y = x Wᵀ + b */
export class Linear {
  /** weight: (outputs, inputs), bias: (outputs,) or null; products: what multiplies. */
  constructor(weight, bias, products) {
    this.weight = weight;
    this.bias = bias;
    this.products = products;
  }

  /** (rows, inputs) -> (rows, outputs) */
  forward(x) {
    return this.products.multiply(x, this.weight, this.bias);
  }
}

/** Each row to mean 0 and spread 1, then stretched and moved by learned factors. */
export class LayerNorm {
  /** weight, bias: (d_model,) */
  constructor(weight, bias) {
    this.weight = weight;
    this.bias = bias;
  }

  /** (rows, d_model) -> the same shape */
  forward({ rows, columns, values }) {
    const y = matrix(rows, columns);
    for (let start = 0; start < values.length; start += columns) {
      let sum = 0;
      for (let at = 0; at < columns; at++) sum += values[start + at];
      const mean = sum / columns;
      let squares = 0;
      for (let at = 0; at < columns; at++) squares += (values[start + at] - mean) * (values[start + at] - mean);
      const scale = 1 / Math.sqrt(squares / columns + EPSILON);
      for (let at = 0; at < columns; at++) y.values[start + at] = (values[start + at] - mean) * scale * this.weight[at] + this.bias[at];
    }
    return y;
  }
}

/** FFN(x) = max(0, x W1 + b1) W2 + b2, equation 2: the same small network at every position. */
class PositionwiseFeedForward {
  constructor(name, { linear, config }) {
    this.name = name;
    this.inner = linear(`${name}.inner`);
    this.outer = linear(`${name}.outer`);
    this.activation = ACTIVATIONS[config.activation];
  }

  /** (length, d_model) -> the same shape */
  forward(x, seen) {
    const hidden = this.inner.forward(x); // (length, d_ff)
    for (let at = 0; at < hidden.values.length; at++) hidden.values[at] = this.activation(hidden.values[at]);
    return seen(`${this.name}.output`, this.outer.forward(seen(`${this.name}.hidden`, hidden)));
  }
}

/** A sub-layer's surroundings: the residual connection and layer normalisation (section 5.4). */
class Residual {
  constructor(name, { norm, config }) {
    this.name = name;
    this.norm = norm(`${name}.norm`);
    this.normFirst = config.norm === "pre";
  }

  /** x: (length, d_model), sublayer: the same shape -> the same shape */
  forward(x, sublayer, seen) {
    if (this.normFirst) {
      const normalised = seen(`${this.name}.normalised`, this.norm.forward(x));
      return seen(`${this.name}.sum`, sumOf(x, sublayer(normalised)));
    }
    const sum = seen(`${this.name}.sum`, sumOf(x, sublayer(x)));
    return seen(`${this.name}.normalised`, this.norm.forward(sum));
  }
}

/** Self-attention, then feed-forward. */
export class EncoderLayer {
  constructor(name, parts) {
    this.name = name;
    this.selfAttention = new MultiHeadAttention(`${name}.self_attention`, parts.linear, parts.config.num_heads);
    this.selfResidual = new Residual(`${name}.self_residual`, parts);
    this.feedForward = new PositionwiseFeedForward(`${name}.feed_forward`, parts);
    this.feedForwardResidual = new Residual(`${name}.feed_forward_residual`, parts);
  }

  /** x: (length, d_model), mask: (length, length) -> as x */
  forward(x, mask, seen) {
    seen(`${this.name}.input`, x);
    x = this.selfResidual.forward(x, (y) => this.selfAttention.forward(y, y, mask, seen), seen);
    x = this.feedForwardResidual.forward(x, (y) => this.feedForward.forward(y, seen), seen);
    return seen(`${this.name}.output`, x);
  }
}

/** Masked self-attention, attention to the encoder's output (`memory`), then feed-forward. */
export class DecoderLayer {
  constructor(name, parts) {
    const numHeads = parts.config.decoder_num_heads ?? parts.config.num_heads;
    this.name = name;
    this.selfAttention = new MultiHeadAttention(`${name}.self_attention`, parts.linear, numHeads);
    this.selfResidual = new Residual(`${name}.self_residual`, parts);
    this.crossAttention = new MultiHeadAttention(`${name}.cross_attention`, parts.linear, numHeads);
    this.crossResidual = new Residual(`${name}.cross_residual`, parts);
    this.feedForward = new PositionwiseFeedForward(`${name}.feed_forward`, parts);
    this.feedForwardResidual = new Residual(`${name}.feed_forward_residual`, parts);
  }

  /** x: (target length, d_model), memory: (source length, d_model) -> as x
   *
   * Queries of the encoder-decoder attention come from x, its keys and values from `memory`. */
  forward(x, memory, targetMask, memoryMask, seen) {
    seen(`${this.name}.input`, x);
    x = this.selfResidual.forward(x, (y) => this.selfAttention.forward(y, y, targetMask, seen), seen);
    x = this.crossResidual.forward(x, (y) => this.crossAttention.forward(y, memory, memoryMask, seen), seen);
    x = this.feedForwardResidual.forward(x, (y) => this.feedForward.forward(y, seen), seen);
    return seen(`${this.name}.output`, x);
  }
}
