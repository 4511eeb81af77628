// Masks: who may attend to whom, 1 = may. (query, key), of one sentence (model/masks.py). Section 3.2.3 of the paper.

import { matrix } from "./matrices.js";

/** Hides padding keys from every query. ids: (length,) -> (queries, length) */
export function paddingMask(ids, padId, queries = 1) {
  return maskOf(queries, ids.length, (query, key) => ids[key] !== padId);
}

/** Look-ahead and padding together, for the decoder's self-attention. ids: (length,) -> (length, length)
 *
 * The first id is the start symbol and never padding, also in models whose start symbol is the pad id (Marian). */
export function targetMask(ids, padId) {
  return maskOf(ids.length, ids.length, (query, key) => key <= query && (key === 0 || ids[key] !== padId));
}

function maskOf(rows, columns, visible) {
  const values = new Uint8Array(rows * columns);
  for (let query = 0; query < rows; query++) {
    for (let key = 0; key < columns; key++) values[query * columns + key] = visible(query, key) ? 1 : 0;
  }
  return matrix(rows, columns, values);
}
