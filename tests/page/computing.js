// Answers with the sentences and tables of the glass box that give numbers, in the document of stand_in.js.

import { createInterface } from "node:readline";

import { analysesOf } from "./page/views/analysed.js";
import { attentionOfHead, sublayerOf } from "./page/views/attention_of_head.js";
import { blockContents } from "./page/views/blocks.js";
import { contrastPart } from "./page/views/contrast.js";
import { headImportance } from "./page/views/head_importance.js";
import { chosenHead, headsView } from "./page/views/heads.js";
import { needsView } from "./page/views/needs.js";
import { nextToken } from "./page/views/next_token.js";
import { allParameters, parametersOf } from "./page/views/parameters.js";
import { toldOf } from "./page/views/scene_words.js";
import { stepsView } from "./page/views/steps.js";
import { trainingView } from "./page/views/training.js";
import { translateView } from "./page/views/translate.js";
import { headsOff } from "./page/views/what_if_heads.js";
import { Element, glassOf } from "./stand_in.js";

const texts = (elements) => elements.map((one) => one.textContent);
const text = (element, name) => texts(element.all(name)).join(" ");
/** The elements of a kind below an element, such as "tr". */
const tagged = (element, tag) => element.children.flatMap((child) => (child instanceof Element ? [...(child.tag === tag ? [child] : []), ...tagged(child, tag)] : []));

function translated(glass) {
  const view = translateView(glass);
  const [list] = view.all("alternatives");
  return { total: [text(view, "figure-number"), texts(view.all("quiet")).join(" ")], alternatives: list ? texts(list.children) : [] };
}

function contrasted(glass) {
  const analyses = analysesOf(glass);
  if (!analyses.found("contrast")) return [];
  return glass.record.steps.map((_, step) => {
    glass.chosen.target = step;
    const [saying, bars] = contrastPart(glass, analyses);
    return [saying.textContent, texts(bars.all("number"))];
  });
}

/** Of each analysis, by the name of its part: its text, its numbers, and the points of its curves. */
function analysed(glass) {
  return Object.fromEntries(
    needsView(glass)
      .all("analysis")
      .filter(({ hidden }) => !hidden)
      .map((part) => [part.attributes.id.replace("glass-", ""), { text: part.textContent, numbers: texts(part.all("number")), lines: tagged(part, "polyline").map((one) => one.attributes.points), rows: tagged(part, "tr").map((row) => texts(row.children)) }]),
  );
}

function withoutHeads(glass) {
  const kept = glass.kept("whatIf heads", { found: null });
  kept.all = true;
  const card = headsOff(glass);
  return { tiles: card.all("effect").map((tile) => [text(tile, "change"), text(tile, "unseen")]), table: tagged(card.all("heads-off")[0], "tr").slice(1).map((row) => texts(row.children)) };
}

function explained(glass, cells) {
  return cells.map(({ kind, layer, head, ...at }) => texts(toldOf(glass.say, attentionOfHead(glass, sublayerOf(glass.record, kind, layer), kind, head), at)).join(" "));
}

/** Of blocks without numbers of a token what stands there. */
function blocks(glass) {
  const { decoder_layers: layers } = glass.record.model.config;
  const attention = { stack: "decoder", sublayer: `decoder.layers.${layers - 1}.cross_attention`, kind: "cross", shown: { head: 0, step: 3 } };
  const asked = { embedding: { stack: "encoder" }, positions: { stack: "decoder" }, attention, softmax: { stack: "decoder" } };
  return Object.fromEntries(Object.entries(asked).map(([kind, about]) => [kind, texts(blockContents[kind](glass, about)).join(" ")]));
}

function sampled(glass, settings) {
  return settings.map(({ step, ...chosen }) => {
    Object.assign(glass.kept("sampling", {}), chosen);
    const { element, draw } = nextToken(glass, () => step);
    draw();
    const [parts] = element.all("sampling-parts");
    return { told: text(parts, "quiet"), rows: tagged(parts, "tr").slice(1).map((row) => texts(row.children)) };
  });
}

function measured(glass, heads) {
  return heads.map(({ kind, layer, head }) => {
    Object.assign(chosenHead(glass), { kind, order: "layer", chosen: [layer, head] });
    const [large] = headsView(glass).all("large");
    return [texts(large.all("measures")[0].children), texts(large.all("quiet")).join(" ")];
  });
}

function searched(glass) {
  glass.chosen.target = glass.record.steps.length - 1;
  glass.kept("beamList", { open: true });
  const view = stepsView(glass);
  return { about: text(view, "quiet"), candidates: view.all("candidates").map((list) => texts(list.children)), finished: texts(view.all("alternatives").flatMap((list) => list.children)) };
}

function trained(glass) {
  return glass.record.training.moments.map((_, at) => {
    Object.assign(glass.kept("training", { at, chosen: null }), { at });
    const view = trainingView(glass);
    return { changes: text(view, "changes"), moment: texts(tagged(view, "dd")), where: texts(tagged(view, "output"))[0], curves: view.all("curves")[0].attributes["aria-label"] };
  });
}

function important(glass) {
  const { element, show } = headImportance(glass);
  show("cross");
  return element.textContent;
}

function counted(config) {
  const kinds = ["embedding", "positions", "attention", "norm", "feedForward", "output", "linear"];
  return { all: allParameters(config), decoder: Object.fromEntries(kinds.map((kind) => [kind, parametersOf(config, "decoder", kind)])) };
}

function answer({ record, language, cells, heads, settings, config }) {
  if (config) return counted(config);
  const glass = () => glassOf(record, language);
  if (record.training) return trained(glass());
  return { ...translated(glass()), contrast: contrasted(glass()), analyses: analysed(glass()), heads: withoutHeads(glass()), cells: explained(glass(), cells), blocks: blocks(glass()), sampling: sampled(glass(), settings), measures: measured(glass(), heads), search: searched(glass()), importance: record.analyses.head_importance ? important(glass()) : "" };
}

for await (const line of createInterface({ input: process.stdin })) console.log(JSON.stringify(answer(JSON.parse(line))));
