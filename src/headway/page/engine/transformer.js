// The Transformer of section 3, as in model/transformer.py: embeddings times sqrt(d_model) (`TokenEmbedding`) plus
// positions, a stack of encoder layers, a stack of decoder layers, the output layer.

import { DecoderLayer, EncoderLayer, LayerNorm, Linear } from "./layers.js";
import { paddingMask, targetMask } from "./masks.js";
import { matrix, rowOf, sumOf } from "./matrices.js";
import { LearnedPositions, SinusoidalPositions } from "./positions.js";
import { unseen } from "./recording.js";

/** The encoder or the decoder: a stack of its layers, on plain floats; knows no vocabulary. */
class Stack {
  constructor(name, Layer, count, parts) {
    this.name = name;
    this.layers = Array.from({ length: count }, (_, layer) => new Layer(`${name}.layers.${layer}`, parts));
    this.norm = parts.config.norm === "pre" ? parts.norm(`${name}.norm`) : null;
  }

  /** x: (length, d_model); given: what a layer is given besides, `seen` last -> as x */
  forward(x, ...given) {
    const seen = given.at(-1);
    seen(`${this.name}.input`, x);
    for (const layer of this.layers) x = layer.forward(x, ...given);
    return seen(`${this.name}.output`, this.norm ? this.norm.forward(x) : x);
  }
}

/** Embeddings scaled by sqrt(d_model), section 3.4. */
class TokenEmbedding {
  /** weight: (vocabulary, d_model) */
  constructor(name, weight) {
    this.name = name;
    this.weight = weight;
  }

  /** ids: (length,) -> (length, d_model) */
  forward(ids, seen) {
    const embedded = matrix(ids.length, this.weight.columns);
    ids.forEach((id, row) => embedded.values.set(rowOf(this.weight, id), row * embedded.columns));
    seen(`${this.name}.embedded`, embedded);
    const root = Math.sqrt(embedded.columns);
    return seen(`${this.name}.scaled`, matrix(embedded.rows, embedded.columns, embedded.values.map((value) => value * root)));
  }
}

/** Encoder and decoder with embeddings and output layer, from source and target ids of one sentence to logits.
 *
 * A source ends in <eos>. The decoder reads <bos> + target. */
export class Transformer {
  /** config: as model/config.py has it; weights: by the names of the model directory, matrices, and (size,) for biases and
   * norms; products: what multiplies, see products.js. */
  constructor(config, weights, products) {
    const named = (name) => weights.get(name) ?? null;
    const linear = (name) => new Linear(named(`${name}.weight`), named(`${name}.bias`), products);
    const norm = (name) => new LayerNorm(named(`${name}.weight`), named(`${name}.bias`));
    const parts = { config, linear, norm };
    const shared = config.share_embeddings;
    const source = named("source_embedding.weight");
    const target = shared === "all" ? source : named("target_embedding.weight");
    this.config = config;
    this.sourceEmbedding = new TokenEmbedding("source_embedding", source);
    this.targetEmbedding = new TokenEmbedding("target_embedding", target);
    this.sourcePositions = positionsOf(config, named("source_positions.weight"));
    this.targetPositions = positionsOf(config, named("target_positions.weight"));
    this.encoder = new Stack("encoder", EncoderLayer, config.encoder_layers, parts);
    this.decoder = new Stack("decoder", DecoderLayer, config.decoder_layers, parts);
    this.output = new Linear(shared === "none" ? named("output.weight") : target, named("output.bias"), products);
  }

  /** source and target: ids -> logits (target length, vocabulary) */
  forward(source, target, seen = unseen) {
    const { pad_id: padId } = this.config;
    const memory = this.encode(source, paddingMask(source, padId, source.length), seen);
    const mask = this.seesAhead ? null : targetMask(target, padId);
    const hidden = this.decode(target, memory, mask, paddingMask(source, padId, target.length), seen);
    return seen("logits", this.output.forward(hidden));
  }

  /** source: ids -> memory (source length, d_model) */
  encode(source, mask, seen = unseen) {
    return this.encoder.forward(this.embed(this.sourceEmbedding, this.sourcePositions, "source_positions", source, seen), mask, seen);
  }

  /** target: ids -> hidden states (target length, d_model); `output` makes logits of them. */
  decode(target, memory, mask, memoryMask, seen = unseen) {
    const x = this.embed(this.targetEmbedding, this.targetPositions, "target_positions", target, seen);
    return this.decoder.forward(x, memory, mask, memoryMask, seen);
  }

  /** Embeddings plus positions. ids: (length,) -> (length, d_model) */
  embed(embedding, positions, name, ids, seen) {
    const scaled = embedding.forward(ids, seen);
    return sumOf(scaled, seen(name, positions.forward(ids.length)));
  }
}

function positionsOf(config, weight) {
  return config.positions === "learned" ? new LearnedPositions(weight) : new SinusoidalPositions(config.d_model);
}
