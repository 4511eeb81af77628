// Finds the head and row of this model's attention that best show a subject of the tour.

import { nameOfWeights } from "./attention_of_head.js";
import { labelOf, measuredHeads, NAMED_FROM } from "./head_labels.js";
import { matrixOf, rowOf } from "./numbers.js";

const KINDS = ["encoder", "cross", "decoder"];

/** The row of the encoder's first layer that looks most at another word. -> as `tellingRow` */
export function tellingQuery(glass) {
  const { heads } = glass.record.attention.encoder;
  return tellingRow(glass, "encoder", Array.from({ length: heads }, (_, head) => ({ layer: 0, head })));
}

/** The same of cross-attention: of the most aligned head where one is called so, else of all. */
export function tellingAlignment(glass) {
  const all = measuredHeads(glass.record, "cross");
  const aligned = all.filter(({ measures }) => labelOf("cross", measures).name === "aligned");
  return tellingRow(glass, "cross", aligned.length ? [mostOf("aligned", aligned)] : all);
}

/** The head that leaves most of its attention with a control symbol, of the first kind of attention that has one which
 * leaves most of it there; where there is none, of all. -> {kind, layer, head, measures, isSink} */
export function sink({ record }) {
  const most = KINDS.filter((kind) => record.attention[kind]).map((kind) => ({ ...mostOf("control", measuredHeads(record, kind)), kind }));
  const first = most.find(({ measures }) => measures.control >= NAMED_FROM);
  return { ...(first ?? mostOf("control", most)), isSink: Boolean(first) };
}

function mostOf(measure, heads) {
  return heads.reduce((best, one) => (one.measures[measure] > best.measures[measure] ? one : best));
}

/** -> {layer, head, row, key, share}: the largest share of a row for one key; words come before punctuation and control
 * symbols, and in self-attention others before the token itself */
function tellingRow({ record, get }, kind, heads) {
  const keys = record.source.tokens;
  const queries = kind === "encoder" ? keys : record.target.tokens;
  const rows = heads.flatMap(({ layer, head }) => {
    const weights = matrixOf(get(nameOfWeights(record, kind, layer)), head);
    return queries.map((query, row) => {
      const shares = rowOf(weights, row);
      const share = Math.max(...shares);
      const key = shares.indexOf(share);
      const other = kind !== "encoder" || key !== row;
      return { layer, head, row, key, share, tells: 2 * other + (isWord(query) && isWord(keys[key])) };
    });
  });
  return rows.reduce((best, one) => (one.tells - best.tells || one.share - best.share) > 0 ? one : best);
}

function isWord({ piece, start, end }) {
  return end > start && /[\p{L}\p{N}]/u.test(piece);
}
