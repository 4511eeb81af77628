// An engine that reads all tokens anew at each step, as in insight/what_if.py: for models whose earlier positions see
// later ones, so that nothing of a step can be kept for the next.

import { Engine, given, logSoftmax, withoutThese } from "./engine.js";
import { matrix, rowOf } from "./matrices.js";

export class RecomputingEngine extends Engine {
  start(source) {
    return { source, read: [[]] };
  }

  step(state, tokens) {
    state.read = state.read.map((read, row) => [...read, tokens[row]]);
    const rows = state.read.map((read) => lastRow(this.model.forward(state.source, read)));
    const logits = matrix(rows.length, rows[0].length);
    rows.forEach((row, number) => logits.values.set(row, number * logits.columns));
    return withoutThese(logSoftmax(logits), this.never);
  }

  select(state, rows) {
    state.read = rows.map((row) => state.read[row]);
  }

  score(source, target) {
    return target.slice(1).map((token, place) => {
      const last = lastRow(this.model.forward(source, target.slice(0, place + 1)));
      return given(matrix(1, last.length, last), [token])[0];
    });
  }
}

function lastRow(logits) {
  return rowOf(logits, logits.rows - 1);
}
