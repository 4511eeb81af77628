// What the translation needs, where it comes from, and in which layer it is decided.

import { analysesOf, QUICK } from "./analysed.js";
import { barRow } from "./bars.js";
import { contrastForm, contrastPart } from "./contrast.js";
import { curvesPart } from "./curves.js";
import { make } from "./elements.js";
import { decoderLensPart, logitLensPart } from "./lenses.js";
import { mapsPart, needsPart } from "./looks_and_needs.js";
import { matrixPicture } from "./matrix.js";
import { decimal, matrixOf, percent } from "./numbers.js";
import { patchingForm, patchingPart } from "./patching.js";
import { brief, pieceTexts } from "./tokens.js";

/** Each: name (of its texts), the analysis that it shows, draw(glass, analyses) -> elements; follows: whether
 * it is of the chosen token; form(glass, ask, analyses) -> where the reader asks for one of another kind, by ask(analysis,
 * failed): as of `analysesOf`. */
const PARTS = [
  { name: "looksAndNeeds", analysis: "erasure", draw: needsPart, follows: true },
  { name: "maps", analysis: "erasure", draw: mapsPart },
  { name: "sourceShare", analysis: "contributions", draw: sharePart },
  { name: "contrast", analysis: "contrast", draw: contrastPart, follows: true, form: contrastForm },
  { name: "logitLens", analysis: "logit_lens", draw: logitLensPart },
  { name: "decoderLens", analysis: "decoder_lens", draw: decoderLensPart },
  { name: "patching", analysis: "patching", draw: patchingPart, form: patchingForm },
  { name: "curves", analysis: "faithfulness", draw: curvesPart },
];

export function needsView(glass) {
  const { say } = glass;
  const analyses = analysesOf(glass);
  const status = make("p", { class: "quiet status", role: "status" });
  const known = new Set(["head_importance", ...PARTS.map(({ analysis }) => analysis)]); // the heads have a view of their own
  const unknown = analyses.names().filter((name) => !known.has(name)).map((name) => ({ name, analysis: name, draw: otherPart(name), title: name, text: "" }));
  const sections = [...PARTS, ...unknown].map((part) => sectionOf(glass, analyses, part));
  const tokens = tokenButtons(glass);
  const kept = glass.kept("needs", { more: false }, true);
  const more = make("details", { class: "more", open: kept.more, toggle: () => (kept.more = more.open) }, make("summary", {}, say("moreAnalyses")));
  const absent = make("p", { class: "quiet" });
  const [first, ...others] = sections;
  more.append(...others.map(({ element }) => element), absent, make("p", { class: "quiet" }, say("needsSources")));
  const refresh = () => {
    sections.forEach((one) => one.refresh());
    const names = PARTS.map(({ analysis }) => analysis).filter((name) => !analyses.found(name) && !analyses.computes(name));
    absent.textContent = names.length ? say(glass.inspect ? "absentHere" : "absentInPage", { names: [...new Set(names)].join(", ") }) : "";
  };
  const follow = () => [tokens, ...sections.filter(({ follows }) => follows)].forEach((one) => one.refresh());
  refresh();
  const missing = QUICK.filter((name) => analyses.computes(name) && !analyses.found(name));
  if (missing.length) analyses.ask(missing, status).then((worked) => (worked ? refresh() : (glass.unanswered = true)));
  return make("div", { class: "view needs", "data-rows": "target", chosen: follow }, tokens.element, status, first.element, more);
}

/** -> {element, refresh, follows}; hidden where there is nothing to show or to ask. */
function sectionOf(glass, analyses, { name, analysis, draw, follows = false, form = null, title, text }) {
  const { say } = glass;
  const place = make("div", { class: "analysis-place" });
  const status = glass.status(`needs ${name}`);
  const ask = async (asked, failed) => {
    const worked = await analyses.ask([asked], status, { failed });
    const leaves = place.contains(document.activeElement);
    if (worked) refresh();
    if (worked && leaves) element.focus({ preventScroll: true }); // the button is gone
    return worked;
  };
  const button = () => make("button", { type: "button", click: () => ask(analysis) }, say("compute"));
  const refresh = () => {
    const found = analyses.found(analysis);
    element.hidden = !found && !analyses.computes(analysis);
    if (found) place.replaceChildren(...draw(glass, analyses));
    else place.replaceChildren(...(form || QUICK.includes(analysis) ? [] : [button()]));
  };
  const asking = form && analyses.computes(analysis) ? form(glass, ask, analyses) : null;
  const about = make("p", { class: "quiet" }, text ?? say(`${name}Text`));
  const element = make("section", { class: "card analysis", id: `glass-${name}`, tabindex: -1 }, make("h3", {}, title ?? say(`${name}Title`)), ...(name === "looksAndNeeds" ? [place, about] : [about, place]), asking, status);
  return { element, refresh, follows };
}

/** Shows an analysis without a part of its own: its fields, and its arrays with a row for each token and a column for each of the source. */
function otherPart(name) {
  return (glass, analyses) => {
    const { fields, parts, array } = analyses.found(name);
    const [rowNames, columnNames] = [glass.record.target, glass.record.source].map(({ tokens }) => pieceTexts(tokens));
    const maps = parts.map((part) => [part, array(part)]).filter(([, { shape }]) => `${shape}` === `${[rowNames.length, columnNames.length]}`);
    const pictures = maps.map(([part, one]) => make("div", {}, make("h4", {}, part), matrixPicture(glass, matrixOf(one), { label: part, rowNames, columnNames, side: "target", square: true, told: (row, column) => `${row} ← ${column}` })));
    return [make("div", { class: "maps" }, pictures), make("pre", { class: "wide" }, JSON.stringify(fields, null, 1))];
  };
}

/** Shows each token's share from the source, and whether the translation depends on the source. */
function sharePart({ record, say }, analyses) {
  const shares = analyses.found("contributions").fields.source_share;
  const erasure = analyses.found("erasure")?.fields;
  const rows = pieceTexts(record.target.tokens).map((name, step) => barRow(brief(name, 16), percent(shares[step]), shares[step]));
  return [
    make("ol", { class: "bars" }, rows),
    erasure ? make("p", {}, say("gain", { nats: decimal(erasure.mean_gain) })) : null,
    erasure ? make("p", { class: erasure.detached ? "warned" : "quiet" }, say(erasure.detached ? "detached" : "attached")) : null,
  ].filter((part) => part);
}

/** The tokens of the translation as buttons that choose one. -> {element, refresh} */
function tokenButtons(glass) {
  const { record, say } = glass;
  const buttons = pieceTexts(record.target.tokens).map((name, step) =>
    make("button", { type: "button", class: "light", click: () => glass.choose("target", step) }, make("bdi", {}, brief(name, 24))),
  );
  const refresh = () => {
    buttons.forEach((button, step) => {
      const chosen = (glass.chosen.target ?? 0) === step;
      button.classList.toggle("chosen", chosen);
      button.setAttribute("aria-pressed", `${chosen}`);
    });
  };
  refresh();
  return { element: make("div", { class: "lights tokens-chosen", role: "group", "aria-label": say("target") }, buttons), refresh };
}
