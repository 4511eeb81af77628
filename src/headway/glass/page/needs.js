// The sixth view: what the translation needs, where it comes from, and in which layer it is decided.

import { absence, analysesOf, QUICK } from "./analysed.js";
import { contrastForm, contrastPart } from "./contrast.js";
import { curvesPart } from "./curves.js";
import { make } from "./elements.js";
import { decoderLensPart, logitLensPart } from "./lenses.js";
import { needsPart } from "./looks_and_needs.js";
import { patchingForm, patchingPart } from "./patching.js";
import { sharePart } from "./source_share.js";
import { tokenButtons } from "./token_buttons.js";

/** Each: name (of its texts), the analysis that it shows, draw(glass, analyses) -> elements; form(glass, ask) -> where the
 * reader asks for one of another kind. */
const PARTS = [
  { name: "looksAndNeeds", analysis: "erasure", draw: needsPart },
  { name: "sourceShare", analysis: "contributions", draw: sharePart },
  { name: "contrast", analysis: "contrast", draw: contrastPart, form: contrastForm },
  { name: "logitLens", analysis: "logit_lens", draw: logitLensPart },
  { name: "decoderLens", analysis: "decoder_lens", draw: decoderLensPart },
  { name: "patching", analysis: "patching", draw: patchingPart, form: patchingForm },
  { name: "curves", analysis: "faithfulness", draw: curvesPart },
];

export function needsView(glass) {
  const { say } = glass;
  const analyses = analysesOf(glass);
  const status = make("p", { class: "quiet status", role: "status" });
  const sections = PARTS.map((part) => sectionOf(glass, analyses, part));
  const tokens = tokenButtons(glass);
  const refresh = () => [tokens, ...sections].forEach((one) => one.refresh());
  const missing = QUICK.filter((name) => analyses.computes(name) && !analyses.found(name));
  if (missing.length) analyses.ask(missing, status).then((worked) => worked && refresh());
  return make("div", { class: "view needs", "data-rows": "target", chosen: refresh }, tokens.element, status, sections.map(({ element }) => element), make("p", { class: "quiet" }, say("needsSources")));
}

/** -> {element, refresh} */
function sectionOf(glass, analyses, { name, analysis, draw, form = null }) {
  const { say } = glass;
  const place = make("div", { class: "analysis-place" });
  const status = make("p", { class: "quiet status", role: "status" });
  const ask = async (asked) => (await analyses.ask([asked], status)) && refresh();
  const button = () => make("button", { type: "button", click: () => ask(analysis) }, say("compute"));
  const refresh = () => {
    const found = analyses.found(analysis);
    if (found) place.replaceChildren(...draw(glass, analyses));
    else if (!analyses.computes(analysis)) place.replaceChildren(make("p", { class: "quiet" }, absence(glass, analysis)));
    else place.replaceChildren(...(form || QUICK.includes(analysis) ? [] : [button()]));
  };
  refresh();
  const asking = form && analyses.computes(analysis) ? form(glass, ask) : null;
  const element = make("section", { class: "card analysis", id: `glass-${name}` }, make("h3", {}, say(`${name}Title`)), make("p", { class: "quiet" }, say(`${name}Text`)), place, asking, status);
  return { element, refresh };
}
