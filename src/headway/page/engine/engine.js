// The engine that search uses, as in decoding/engine.py, for one sentence. Search knows ids and these functions only.

import { paddingMask } from "./masks.js";
import { matrix, rowOf } from "./matrices.js";
import { DecoderStep } from "./step.js";

/** A model that translates step by step, with caches of keys and values. */
export class Engine {
  /** never: ids that no translation may have, beside padding and the start symbol. */
  constructor(model, never = []) {
    const { pad_id: padId, bos_id: bosId, eos_id: eosId } = model.config;
    this.model = model;
    this.bosId = bosId;
    this.eosId = eosId;
    this.never = [padId, bosId, ...never].filter((id) => id !== eosId); // where start and end are one symbol, it must be allowed
    this.decoder = new DecoderStep(model);
  }

  /** source: ids with <eos> -> the state before the first step, of one hypothesis */
  start(source) {
    const { model } = this;
    const memory = model.encode(source, paddingMask(source, model.config.pad_id, source.length));
    return this.decoder.start(memory, paddingMask(source, model.config.pad_id));
  }

  /** Reads one token of each hypothesis. -> log-probabilities of the next (hypotheses, vocabulary), -infinity for what is
   * never a next token; changes the state. */
  step(state, tokens) {
    return withoutThese(logSoftmax(this.model.output.forward(this.decoder.step(state, tokens))), this.never);
  }

  /** Keeps the hypotheses with these numbers, in this order. */
  select(state, rows) {
    this.decoder.select(state, rows);
  }

  /** The log-probability of each given token. source: ids with <eos>; target: with <bos> and <eos> -> (target length,) */
  score(source, target) {
    return ofTokens(logSoftmax(this.model.forward(source, target.slice(0, -1))), target.slice(1));
  }
}

/** Log softmax of each row. (rows, columns) -> the same shape */
export function logSoftmax({ rows, columns, values }) {
  const logarithms = matrix(rows, columns);
  for (let row = 0; row < rows; row++) {
    const logits = values.subarray(row * columns, (row + 1) * columns);
    const found = rowOf(logarithms, row);
    let most = -Infinity;
    let total = 0;
    for (let at = 0; at < columns; at++) if (logits[at] > most) most = logits[at];
    for (let at = 0; at < columns; at++) total += Math.exp(logits[at] - most);
    const sum = most + Math.log(total);
    for (let at = 0; at < columns; at++) found[at] = logits[at] - sum;
  }
  return logarithms;
}

export function withoutThese(logProbabilities, never) {
  for (let row = 0; row < logProbabilities.rows; row++) for (const id of never) rowOf(logProbabilities, row)[id] = -Infinity;
  return logProbabilities;
}

/** The log-probability of one token of each row. */
export function ofTokens(logarithms, tokens) {
  return tokens.map((token, row) => rowOf(logarithms, row)[token]);
}
