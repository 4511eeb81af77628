// The inside of an attention of the machine: one head as a scene, its stages one after the other, and the heads mixed.

import { attentionOfHead } from "./attention_of_head.js";
import { headColour } from "./colours.js";
import { choice, formula, make } from "./elements.js";
import { attentionScene } from "./scene.js";
import { arrayPicture, isEdited, note, rowsOf, stage, times } from "./stages.js";

/** The stages of an attention: the sign of each, what the scene shows, and what makes its text. */
const STAGES = [
  [null, "whole", whole],
  ["Q K V", "project", project],
  ["Q K^{T}", "products", multiply],
  ['"÷" √d_{k}', "division", divide],
  ['"mask"', "mask", hide],
  ['"softmax"', "softmax", share],
  ["A V", "mixing", mixValues],
  ['"concat"', "whole", concatenate],
  ["W^{O}", "whole", mixHeads],
];

/** block: {stack, sublayer, kind, shown: {head, step}, which the reader chooses}. -> elements */
export function attentionStages(glass, { stack, sublayer, kind, shown }) {
  const { say } = glass;
  const about = aboutAttention(glass, stack, sublayer, kind);
  const body = make("div", { class: "stages" });
  const attention = () => attentionOfHead(glass, sublayer, kind, shown.head);
  const first = attention();
  const scene = first ? attentionScene(glass, first, say("sceneLabel", { head: shown.head + 1 })) : null;
  const showStage = () => {
    const [, part, text] = STAGES[shown.step];
    scene?.show(part);
    body.replaceChildren(text(glass, { ...about, head: shown.head }));
  };
  const heads = Array.from({ length: about.heads }, (_, head) => [`${head}`, headName(head)]);
  const headChoice = choice(say("headOf", { heads: about.heads }), heads, `${shown.head}`, (value) => {
    shown.head = Number(value);
    scene?.load(attention());
    showStage();
  });
  const signs = STAGES.map(([sign], at) => [`${at}`, sign ? formula(sign) : say("wholeScene")]);
  const stages = choice(say("stageOf", { count: STAGES.length - 1 }), signs, `${shown.step}`, (value) => {
    shown.step = Number(value);
    showStage();
  });
  const goOn = () => stages.querySelectorAll("input")[(shown.step + 1) % signs.length].click();
  showStage();
  return [
    make("div", { class: "controls" }, headChoice, stages, make("button", { type: "button", click: goOn }, say("nextStage"))),
    scene ? scene.element : note(say("noNumbers")),
    body,
  ];
}

/** The number of a head with its colour. */
function headName(head) {
  return make("span", {}, make("span", { class: "swatch", "aria-hidden": "true", "--head": headColour(head) }), `${head + 1}`);
}

/** Names and sizes for the stages. */
function aboutAttention(glass, stack, sublayer, kind) {
  const { record } = glass;
  const queries = rowsOf(glass, stack);
  const keys = rowsOf(glass, kind === "cross" ? "encoder" : stack);
  const heads = stack === "encoder" ? record.model.config.num_heads : record.model.config.decoder_num_heads;
  const width = stack === "encoder" ? record.model.d_head : record.model.decoder_d_head;
  return {
    sublayer,
    kind,
    queries,
    n: queries.rowNames.length,
    m: keys.rowNames.length,
    heads,
    width,
    d_model: record.model.config.d_model,
    root: Math.sqrt(width).toFixed(3),
    unscaled: isEdited(glass, "scaling_off"),
  };
}

function whole({ say }, { kind, n, m, width }) {
  const equation = '"Attention"(Q, K, V) = "softmax"(Q K^{T} / √d_{k}) V';
  return stage(say, kind === "cross" ? "crossScene" : "scene", { title: "scene", equation, shape: `${times(n, width)}, ${times(m, width)} → ${times(n, width)}` });
}

function project({ say }, { kind, heads, n, m, width, d_model, unscaled, root }) {
  const made = (letter, length) =>
    make(
      "h6",
      { class: "equation" },
      formula(`${letter} = ${letter === "Q" || kind !== "cross" ? "x" : "m"} W^{${letter}} + b^{${letter}}`),
      make("span", { class: "shape" }, `${times(length, d_model)} → ${times(length, width)}`),
    );
  return stage(
    say,
    kind === "cross" ? "crossProjections" : "projections",
    { shape: say("ofEachHead", { heads }), values: { width, n, m } },
    make("div", { class: "made" }, made("Q", n), made("K", m), made("V", m)),
    unscaled ? note(say("unscaledQueries", { root })) : null,
  );
}

function multiply({ say }, { n, m, width }) {
  return stage(say, "products", { equation: "Q K^{T}", shape: `${times(n, width)} · ${times(width, m)} → ${times(n, m)}` });
}

function divide({ say }, { n, m, root, width, unscaled }) {
  const equation = unscaled ? "s = Q K^{T}" : `s = Q K^{T} / √d_{k} = Q K^{T} / ${root}`;
  return stage(say, unscaled ? "unscaled" : "division", { equation, shape: times(n, m), values: { width, root } });
}

function hide(glass, { kind, sublayer, n, m }) {
  const { say, get } = glass;
  if (!get(`${sublayer}.mask`)) {
    const off = kind === "decoder" && isEdited(glass, "look_ahead_off");
    return stage(say, off ? "maskOff" : "noMask", { equation: "s", shape: times(n, m) });
  }
  const equation = kind === "decoder" ? "s_{ij} = −∞, j > i" : 's_{ij} = −∞, j "padding"';
  return stage(say, kind === "decoder" ? "lookAhead" : "padding", { equation, shape: times(n, m) });
}

function share({ say }, { n, m }) {
  return stage(say, "softmaxWeights", { equation: 'A = "softmax"(s)', shape: times(n, m) });
}

function mixValues({ say }, { n, m, width }) {
  return stage(say, "weighted", { equation: '"head" = A V', shape: `${times(n, m)} · ${times(m, width)} → ${times(n, width)}`, values: { width } });
}

function concatenate(glass, { sublayer, queries, n, heads, width, d_model }) {
  return stage(
    glass.say,
    "concatenation",
    {
      equation: `"Concat"("head"_{1}, …, "head"_{${heads}})`,
      shape: `${heads} · ${times(n, width)} → ${times(n, d_model)}`,
      values: { heads, width, d_model },
    },
    arrayPicture(glass, `${sublayer}.heads`, queries, { joined: true, label: glass.say("concatenationTitle") }),
  );
}

function mixHeads(glass, { sublayer, queries, n, d_model }) {
  return stage(
    glass.say,
    "mixing",
    { equation: '"Concat"(…) W^{O} + b^{O}', shape: `${times(n, d_model)} → ${times(n, d_model)}` },
    arrayPicture(glass, `${sublayer}.output`, queries, { label: glass.say("mixingTitle") }),
  );
}
