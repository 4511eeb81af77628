// One source and its translation, read again by a model with some of the source's tokens erased, as in
// insight/analyses/reading.py: the embedding of an erased token is zero, its position stays.

import { logSoftmax } from "./engine.js";
import { paddingMask, targetMask } from "./masks.js";
import { matrix, rowOf, sumOf } from "./matrices.js";
import { unseen } from "./recording.js";

export class Reading {
  /** Ids are with <eos>. */
  constructor(model, sourceIds, targetIds) {
    this.model = model;
    this.source = sourceIds;
    this.read = [model.config.bos_id, ...targetIds.slice(0, -1)];
    this.given = targetIds;
    this.words = sourceIds.length - 1; // before <eos>
  }

  /** The encoder's output with these tokens erased. -> (source length, d_model) */
  memory(erased = []) {
    const { model, source } = this;
    const embedded = model.sourceEmbedding.forward(source, unseen);
    for (const token of erased) rowOf(embedded, token).fill(0);
    const x = sumOf(embedded, model.sourcePositions.forward(source.length));
    return model.encoder.forward(x, paddingMask(source, model.config.pad_id, source.length), unseen);
  }

  /** The decoder's output from a memory over the first `steps` steps. -> (steps, d_model) */
  hidden(memory, steps = this.read.length) {
    const { pad_id: padId } = this.model.config;
    const read = this.read.slice(0, steps);
    return this.model.decode(read, memory, targetMask(read, padId), paddingMask(this.source, padId, steps));
  }

  /** Log-probabilities of every step. -> (target length, vocabulary) */
  logarithms(memory) {
    return logSoftmax(this.model.output.forward(this.hidden(memory)));
  }

  /** Log-probabilities of one step. -> (vocabulary,) */
  logarithmsOf(step, memory) {
    const hidden = this.hidden(memory, step + 1);
    return logSoftmax(this.model.output.forward(matrix(1, hidden.columns, rowOf(hidden, step).slice()))).values;
  }
}
