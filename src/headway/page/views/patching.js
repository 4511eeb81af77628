// Activation patching: one state inside the model is replaced by that of another sentence.

import { sourceAsItWas } from "./asking.js";
import { askingForm, make } from "./elements.js";
import { layerName } from "./lenses.js";
import { matrixPicture } from "./matrix.js";
import { matrixOf, percent } from "./numbers.js";
import { chip, phrase } from "./phrases.js";
import { loosePiece, pieceTexts, readTexts, visible } from "./tokens.js";

const NEAR = 8;

/** A sentence of as many tokens: one that is near to the shown one, or of the reader's own. Of those that are near, the first
 * is taken that the model translates otherwise; none after one that fails for another reason than the sentence. */
export function patchingForm({ record, say, kept }, ask) {
  const near = nearSentences(sourceAsItWas(record));
  const typed = kept("other", { text: near[0] ?? "" });
  const submit = async (input) => {
    const others = typed.text === near[0] ? near : [typed.text];
    for (const other of others) {
      typed.text = input.value = other;
      let isRefused = false;
      await ask({ kind: "patching", other }, ({ message }) => (isRefused = message.startsWith("patching:")));
      if (!isRefused) break;
    }
  };
  return askingForm(typed, "glass-other", say("otherLabel"), say("compute"), submit);
}

/** The sentence with a number changed in its last digit, then with two words in each other's place, the longest first. */
export function nearSentences(text) {
  const changed = (digit) => (digit === "9" ? 8 : Number(digit) + 1);
  const numbers = [...text.matchAll(/[0-9](?![0-9])/gu)].map(({ 0: digit, index }) => text.slice(0, index) + changed(digit) + text.slice(index + 1));
  const words = [...text.matchAll(/[\p{L}\p{M}'’]+/gu)].toSorted((one, two) => two[0].length - one[0].length);
  const swaps = words.slice(1).map((two, at) => {
    const [first, last] = [words[at], two].toSorted((one, next) => one.index - next.index);
    const between = text.slice(first.index + first[0].length, last.index);
    return text.slice(0, first.index) + last[0] + between + first[0] + text.slice(last.index + last[0].length);
  });
  return [...numbers, ...swaps].filter((one, at, all) => one !== text && all.indexOf(one) === at).slice(0, NEAR);
}

export function patchingPart(glass, analyses) {
  const { record, say } = glass;
  const { fields, array } = analyses.found("patching");
  const values = { word: chip(loosePiece(fields.word.piece)), other: chip(loosePiece(fields.other_word.piece)), sentence: chip(visible(fields.other)), flips: percent(fields.flips_above) };
  const map = (stack, columnNames) => {
    const matrix = matrixOf(array(stack));
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
