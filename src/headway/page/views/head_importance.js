// Shows how much the model needs each head, over many sentences, beside the habits of heads in their view.

import { analysesOf } from "./analysed.js";
import { largest } from "./colours.js";
import { make } from "./elements.js";
import { matrixPicture } from "./matrix.js";
import { decimal, matrixOf } from "./numbers.js";

const MEASURES = ["ablation", "gradient"];

/** A section of the heads view: the importance of the heads of a kind of attention. -> {element, show(kind)} */
export function headImportance(glass) {
  const { say } = glass;
  const analyses = analysesOf(glass);
  const kept = glass.kept("importance", { found: analyses.found("head_importance"), open: false }, true); // it isn't of the sentence
  const place = make("div", {});
  const status = glass.status("importance");
  const ask = async () => {
    const worked = await analyses.ask(["head_importance"], status, { edits: [] }); // of the model as it is, whatever is switched off
    glass.unanswered ||= !worked;
    if (!worked) return;
    kept.found = analyses.found("head_importance");
    show(shown);
  };
  let shown = null;
  const show = (kind) => {
    shown = kind;
    if (kept.found) place.replaceChildren(...pictures(glass, kept.found, kind));
    else if (glass.measured.includes("head_importance")) place.replaceChildren();
    else if (analyses.computes("head_importance")) place.replaceChildren(make("button", { type: "button", click: ask }, say("measureHeads")));
    else place.replaceChildren(make("p", { class: "quiet" }, say(glass.inspect ? "notMeasured" : "absentInPage", { names: "head_importance" })));
  };
  const toggle = () => (kept.open = element.open);
  if (!kept.found && glass.measured.includes("head_importance")) ask();
  const element = make("details", { class: "importance", open: kept.open, toggle }, make("summary", {}, say("importanceTitle")), make("p", { class: "quiet" }, say("importanceText")), place, status);
  return { element, show };
}

/** By ablation, and by the gradient: (layers, heads) each. */
function pictures(glass, { fields, array }, kind) {
  const { say } = glass;
  const maps = MEASURES.map((measure) => {
    const matrix = matrixOf(array(`${measure}.${kind}`));
    const names = (count, name) => Array.from({ length: count }, (_, at) => say(name, { number: at + 1 }));
    const picture = matrixPicture(glass, matrix, {
      label: say(`importance_${measure}`),
      rowNames: names(matrix.rows, "layerNumber"),
      columnNames: names(matrix.columns, "headNumber"),
      limit: largest(matrix),
      square: true,
      cell: 40,
      told: (row, column) => `${row}, ${column}`,
    });
    return make("div", {}, make("h3", {}, say(`importance_${measure}`)), picture);
  });
  const { sentences, tokens, log_probability: score } = fields;
  return [make("div", { class: "maps" }, maps), make("p", { class: "quiet" }, say("importanceOver", { sentences, tokens, score: decimal(score) }))];
}
