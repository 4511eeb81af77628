// What is inside an attention of the machine: the steps of one head, from Q, K and V to the heads mixed.

import { largest } from "./colours.js";
import { choice, formula, make } from "./elements.js";
import { matrixOf } from "./numbers.js";
import { arrayPicture, isEdited, note, picture, rowsOf, stage, times } from "./stages.js";

/** The steps of an attention: the sign of each, and what makes its stage. */
const STEPS = [
  ["Q K V", project],
  ["Q K^{T}", multiply],
  ['"÷" √d_{k}', divide],
  ['"mask"', hide],
  ['"softmax"', share],
  ["A V", mixValues],
  ['"concat"', concatenate],
  ["W^{O}", mixHeads],
];

/** block: {stack, sublayer, kind, shown: {head, step}, which the reader chooses}. -> elements */
export function attentionStages(glass, { stack, sublayer, kind, shown }) {
  const { say } = glass;
  const about = aboutAttention(glass, stack, sublayer, kind);
  const body = make("div", { class: "stages" });
  const show = () => body.replaceChildren(STEPS[shown.step][1](glass, { ...about, head: shown.head }));
  const chooser = (name, label, options) =>
    choice(label, options, `${shown[name]}`, (value) => {
      shown[name] = Number(value);
      show();
    });
  const heads = Array.from({ length: about.heads }, (_, head) => [`${head}`, `${head + 1}`]);
  const signs = STEPS.map(([sign], at) => [`${at}`, formula(sign)]);
  const steps = chooser("step", say("stageOf", { count: signs.length }), signs);
  const goOn = () => steps.querySelectorAll("input")[(shown.step + 1) % signs.length].click();
  show();
  return [
    chooser("head", say("headOf", { heads: about.heads }), heads),
    steps,
    body,
    make("p", {}, make("button", { type: "button", click: goOn }, say("nextStage"))),
  ];
}

/** What the steps need to know: names, sizes, and how much a score is multiplied with to be a product again. */
function aboutAttention(glass, stack, sublayer, kind) {
  const { record } = glass;
  const queries = rowsOf(glass, stack);
  const keys = rowsOf(glass, kind === "cross" ? "encoder" : stack);
  const heads = stack === "encoder" ? record.model.config.num_heads : record.model.config.decoder_num_heads;
  const width = stack === "encoder" ? record.model.d_head : record.model.decoder_d_head;
  const unscaled = isEdited(glass, "scaling_off");
  return {
    sublayer,
    kind,
    queries,
    keys,
    n: queries.rowNames.length,
    m: keys.rowNames.length,
    heads,
    width,
    d_model: record.model.config.d_model,
    root: Math.sqrt(width).toFixed(3),
    unscaled,
    factor: unscaled ? 1 : Math.sqrt(width),
  };
}

/** Q K^T of one head, from the scores; null where the record has none. */
function productsOf(glass, { sublayer, head, factor }) {
  const scores = glass.get(`${sublayer}.scores`);
  if (!scores) return null;
  const matrix = matrixOf(scores, head);
  return { ...matrix, values: matrix.values.map((value) => value * factor) };
}

/** A picture of an array (heads, query, key). */
function mapPicture(glass, { sublayer, head, queries, keys }, name, options) {
  return arrayPicture(glass, `${sublayer}.${name}`, queries, { square: true, number: head, columnNames: keys.rowNames, ...options });
}

function project(glass, about) {
  const { say } = glass;
  const { sublayer, kind, head, heads, queries, keys, n, m, width, d_model } = about;
  const projected = (name, letter, rows) => {
    const length = rows.rowNames.length;
    return make(
      "div",
      {},
      make(
        "h6",
        { class: "equation" },
        formula(`${letter} = ${name === "queries" || kind !== "cross" ? "x" : "m"} W^{${letter}} + b^{${letter}}`),
        make("span", { class: "shape" }, `${times(length, d_model)} → ${times(length, width)}`),
      ),
      arrayPicture(glass, `${sublayer}.${name}`, rows, { number: head, label: letter }),
    );
  };
  return stage(
    say,
    kind === "cross" ? "crossProjections" : "projections",
    { shape: say("ofEachHead", { heads }), values: { width, n, m } },
    projected("queries", "Q", queries),
    about.unscaled ? note(say("unscaledQueries", { root: about.root })) : null,
    projected("keys", "K", keys),
    projected("values", "V", keys),
  );
}

function multiply(glass, about) {
  const { n, m, width, queries, keys } = about;
  const { say } = glass;
  const products = productsOf(glass, about);
  return stage(
    say,
    "products",
    { equation: "Q K^{T}", shape: `${times(n, width)} · ${times(width, m)} → ${times(n, m)}` },
    about.unscaled ? note(say("unscaledQueries", { root: about.root })) : null,
    products
      ? picture(glass, products, { label: say("productsTitle"), ...queries, square: true, columnNames: keys.rowNames })
      : note(say("noNumbers")),
  );
}

function divide(glass, about) {
  const { n, m, root, width, unscaled } = about;
  const products = productsOf(glass, about);
  return stage(
    glass.say,
    unscaled ? "unscaled" : "division",
    { equation: unscaled ? "s = Q K^{T}" : `s = Q K^{T} / √d_{k} = Q K^{T} / ${root}`, shape: times(n, m), values: { width, root } },
    mapPicture(glass, about, "scores", { limit: products ? largest(products) : 1, label: glass.say("divisionTitle") }),
  );
}

function hide(glass, about) {
  const { say } = glass;
  const { kind, sublayer, n, m } = about;
  const products = productsOf(glass, about);
  const limit = products ? largest(products) : 1;
  if (!glass.get(`${sublayer}.mask`)) {
    const off = kind === "decoder" && isEdited(glass, "look_ahead_off");
    const body = mapPicture(glass, about, "scores", { limit, label: say("maskTitle") });
    return stage(say, off ? "maskOff" : "noMask", { equation: "s", shape: times(n, m) }, body);
  }
  return stage(
    say,
    kind === "decoder" ? "lookAhead" : "padding",
    { equation: kind === "decoder" ? "s_{ij} = −∞, j > i" : 's_{ij} = −∞, j "padding"', shape: times(n, m) },
    mapPicture(glass, about, "masked_scores", { limit, label: say("maskTitle") }),
  );
}

function share(glass, about) {
  return stage(
    glass.say,
    "softmaxWeights",
    { equation: 'A = "softmax"(s)', shape: times(about.n, about.m) },
    mapPicture(glass, about, "weights", { scale: "share", label: glass.say("softmaxWeightsTitle") }),
  );
}

function mixValues(glass, { sublayer, head, queries, n, m, width }) {
  return stage(
    glass.say,
    "weighted",
    { equation: '"head" = A V', shape: `${times(n, m)} · ${times(m, width)} → ${times(n, width)}`, values: { width } },
    arrayPicture(glass, `${sublayer}.heads`, queries, { number: head, label: glass.say("weightedTitle") }),
  );
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
