// The computation of one attention head, from the arrays of the record.

import { attentionLabels } from "./tokens.js";
import { matrixOf, meanMatrix } from "./numbers.js";
import { isEdited } from "./stages.js";

/** The data of scene.js; null if the record lacks a part. sublayer: as the arrays are named. */
export function attentionOfHead(glass, sublayer, kind, head) {
  const { record, get } = glass;
  const [queries, keys, values, scores, weights, output] = ["queries", "keys", "values", "scores", "weights", "heads"].map((name) => {
    const array = get(`${sublayer}.${name}`);
    return array && matrixOf(array, head);
  });
  if (![queries, keys, values, scores, weights, output].every((one) => one)) return null;
  const masked = get(`${sublayer}.mask`) ? matrixOf(get(`${sublayer}.masked_scores`), head) : scores;
  const scaling = !isEdited(glass, "scaling_off");
  const root = Math.sqrt(keys.columns);
  const times = (matrix, factor) => ({ ...matrix, values: matrix.values.map((value) => value * factor) });
  const [rowNames, columnNames] = attentionLabels(record, kind);
  return {
    queries: scaling ? queries : times(queries, 1 / root), // the scaling was undone by making Q larger
    keys,
    values,
    products: scaling ? times(scores, root) : scores,
    scaled: scores,
    masked,
    weights,
    output,
    width: keys.columns,
    scaling,
    scale: head,
    side: kind === "encoder" ? "source" : "target",
    rowNames,
    columnNames,
  };
}

/** The name below which the arrays of an attention are. */
export function sublayerOf({ attention }, kind, layer) {
  return attention[kind].names.replace("{layer}", layer);
}

export function nameOfWeights(record, kind, layer) {
  return `${sublayerOf(record, kind, layer)}.weights`;
}

/** The mean attention of all heads in all layers, as a matrix; null where the record has no weights of that kind. */
export function meanAttention({ record, get }, kind) {
  const layers = Array.from({ length: record.attention[kind]?.layers ?? 0 }, (_, layer) => get(nameOfWeights(record, kind, layer))).filter((one) => one);
  return layers.length ? meanMatrix(layers) : null;
}
