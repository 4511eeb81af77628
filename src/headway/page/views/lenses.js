// Lenses: what each decoder layer would say, and what the decoder would say of each encoder layer.

import { make } from "./elements.js";
import { decimal, percent } from "./numbers.js";
import { brief, loosePiece, pieceTexts, visible } from "./tokens.js";

/** The likeliest token of each layer and step; the deeper its colour, the surer. */
export function logitLensPart({ record, say }, analyses) {
  const { top } = analyses.found("logit_lens").fields;
  const names = pieceTexts(record.target.tokens);
  const head = make("tr", {}, make("th", { scope: "col" }, say("layer")), names.map((name) => make("th", { scope: "col" }, brief(name))));
  const rows = top.map((layer, at) => make("tr", {}, make("th", { scope: "row" }, layerName(say, at)), layer.map((step, place) => lensCell(step, record.target.tokens[place].id))));
  return [make("div", { class: "wide", tabindex: 0, role: "region", "aria-label": say("logitLensTitle") }, make("table", { class: "lens" }, make("thead", {}, head), make("tbody", {}, rows)))];
}

function lensCell([best, ...others], given) {
  const list = [best, ...others].map(({ piece, probability }) => `${loosePiece(piece)} ${percent(probability)}`).join(", ");
  return make(
    "td",
    { class: best.id === given ? "given" : null, title: list, "--share": best.probability.toFixed(3) },
    make("bdi", {}, brief(loosePiece(best.piece))),
    make("span", { class: "number" }, percent(best.probability)),
  );
}

export function decoderLensPart({ record, say }, analyses) {
  const { translations } = analyses.found("decoder_lens").fields;
  const rows = translations.map(({ text, score }, at) =>
    make("tr", { class: text === record.target.text ? "given" : null }, make("th", { scope: "row" }, layerName(say, at)), make("td", {}, make("bdi", {}, brief(visible(text), 200))), make("td", { class: "number" }, decimal(score))),
  );
  return [make("table", { class: "lens" }, make("tbody", {}, rows))];
}

/** Layer 0 is what the first layer reads. */
export function layerName(say, layer) {
  return layer ? say("layerNumber", { number: layer }) : say("layerInput");
}
