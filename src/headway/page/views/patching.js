// Activation patching: one state inside the model is replaced by that of another sentence.

import { matrixOfArray } from "./analysed.js";
import { make } from "./elements.js";
import { layerName } from "./lenses.js";
import { matrixPicture } from "./matrix.js";
import { percent } from "./numbers.js";
import { chip, phrase } from "./phrases.js";
import { loosePiece, pieceTexts, readTexts, visible } from "./tokens.js";

/** A sentence of as many tokens: the reader changes a word of the shown one. */
export function patchingForm({ record, say }, ask) {
  const input = make("input", { type: "text", id: "glass-other", value: record.source.original ?? record.source.text, dir: "auto" });
  const submit = (event) => {
    event.preventDefault();
    ask({ kind: "patching", other: input.value });
  };
  return make("form", { class: "asking", submit }, make("label", { for: "glass-other" }, say("otherLabel")), input, make("button", { type: "submit" }, say("compute")));
}

export function patchingPart(glass, analyses) {
  const { record, say } = glass;
  const { fields, array } = analyses.found("patching");
  const values = { word: chip(loosePiece(fields.word.piece)), other: chip(loosePiece(fields.other_word.piece)), sentence: chip(visible(fields.other)), flips: percent(fields.flips_above) };
  const map = (stack, columnNames) => {
    const matrix = matrixOfArray(array(stack));
    const title = say(stack);
    const rowNames = Array.from({ length: matrix.rows }, (_, layer) => layerName(say, layer));
    const picture = matrixPicture(glass, matrix, { label: title, rowNames, columnNames: columnNames.slice(0, matrix.columns), scale: "sign", limit: 1, square: true, cell: 34, told: (row, column) => `${row}, ${column}` });
    return make("div", {}, make("h4", {}, title), picture);
  };
  return [
    make("p", { class: "saying" }, phrase(say, "patched", values)),
    make("div", { class: "maps" }, map("encoder", pieceTexts(record.source.tokens)), map("decoder", readTexts(record))),
  ];
}
