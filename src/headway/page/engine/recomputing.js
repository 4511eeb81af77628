// An engine that reads all tokens anew at each step, as in insight/what_if.py: for models whose earlier positions see
// later ones, so that nothing of a step can be kept for the next.

import { Engine, logSoftmax, ofTokens, withoutThese } from "./engine.js";
import { matrix, rowOf } from "./matrices.js";
import { editedModel, seesAhead } from "./what_if.js";

/** The engine for a model after edits. never: as for Engine. */
export function engineOf(model, edits, never) {
  return new (seesAhead(edits) ? RecomputingEngine : Engine)(editedModel(model, edits), never);
}

class RecomputingEngine extends Engine {
  start(source) {
    return { source, read: [[]] };
  }

  step(state, tokens) {
    state.read = state.read.map((read, row) => [...read, tokens[row]]);
    return withoutThese(this.logarithms(state.source, state.read), this.never);
  }

  select(state, rows) {
    state.read = rows.map((row) => state.read[row]);
  }

  score(source, target) {
    const tokens = target.slice(1);
    return ofTokens(this.logarithms(source, tokens.map((_, place) => target.slice(0, place + 1))), tokens);
  }

  /** Log-probabilities of what comes after each of several beginnings. -> (beginnings, vocabulary) */
  logarithms(source, beginnings) {
    const rows = beginnings.map((read) => rowOf(this.model.forward(source, read), read.length - 1));
    const logits = matrix(rows.length, rows[0].length);
    rows.forEach((row, number) => rowOf(logits, number).set(row));
    return logSoftmax(logits);
  }
}
