// Lenses, as in insight/analyses/logit_lens.py and decoder_lens.py: the prediction of a layer in the middle. Layer 0 is the input.

import { Engine, ofTokens } from "./engine.js";
import { greedy } from "./greedy.js";
import { likeliest, matrix, rowOf } from "./matrices.js";
import { Reading } from "./reading.js";
import { alike } from "./what_if.js";

const LIKELIEST = 5;

/** The logit lens of each decoder layer. -> {log_probability: (layers + 1, target), top: [layer][step], the likeliest {id, probability}} */
export function logitLens(reading) {
  const rows = cutModels(reading.model, "decoder").map((model) => logarithmsOf(reading, model));
  const top = (row) => likeliest(row, LIKELIEST).map((id) => ({ id, probability: Math.exp(row[id]) }));
  return {
    log_probability: stacked(rows.map((one) => ofTokens(one, reading.given))),
    top: rows.map((one) => reading.given.map((_, step) => top(rowOf(one, step)))),
  };
}

/** The decoder's predictions from each encoder layer, and its greedy translations of up to maxLength tokens.
 * -> {log_probability: (layers + 1, target), translations: [{ids, score}]} */
export function decoderLens(reading, never, maxLength) {
  const models = cutModels(reading.model, "encoder");
  return {
    log_probability: stacked(models.map((model) => ofTokens(logarithmsOf(reading, model), reading.given))),
    translations: models.map((model) => greedy(new Engine(model, never), reading.source, maxLength)),
  };
}

function logarithmsOf({ source, given }, model) {
  const reading = new Reading(model, source, given);
  return reading.logarithms(reading.memory());
}

/** Copies that share the weights, and end a stack after 0, 1, ..., all of its layers. */
function cutModels(model, stack) {
  const { layers } = model[stack];
  return Array.from({ length: layers.length + 1 }, (_, count) =>
    Object.assign(alike(model), { [stack]: Object.assign(alike(model[stack]), { layers: layers.slice(0, count) }) }),
  );
}

function stacked(rows) {
  return matrix(rows.length, rows[0].length, Float32Array.from(rows.flat()));
}
