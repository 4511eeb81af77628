// What is inside the blocks of the machine: for each its stages, with equation, shapes and the numbers of this sentence.

import { probabilityBars } from "./bars.js";
import { largest } from "./colours.js";
import { choice, formula, make, select } from "./elements.js";
import { matrixPicture } from "./matrix.js";
import { matrixOf, meanAndSpread, percent, readable, rowProducts, shareOfZeros, sideBySide } from "./numbers.js";
import { attentionLabels, pieceTexts, readTexts, visible } from "./tokens.js";

const STEP_SIGNS = ["Q K V", "Q K^{T}", '"÷" √d_{k}', '"mask"', '"softmax"', "A V", '"concat"', "W^{O}"];

/** Each takes the glass box and the block: {stack, sublayer, kind}. -> elements */
export const blockContents = {
  tokens: tokenStages,
  embedding: embeddingStages,
  positions: positionStages,
  attention: attentionStages,
  addNorm: addNormStages,
  norm: normStages,
  add: addStages,
  feedForward: feedForwardStages,
  output: outputStages,
  linear: (glass) => predictionStages(glass, "linear"),
  softmax: (glass) => predictionStages(glass, "softmax"),
};

function stage(say, name, { equation, shape, values }, ...body) {
  return make(
    "section",
    { class: "stage" },
    make("h5", {}, say(`${name}Title`)),
    equation || shape
      ? make(
          "p",
          { class: "equation" },
          equation ? formula(equation) : null,
          shape ? make("span", { class: "shape" }, shape) : null,
        )
      : null,
    make("p", {}, say(`${name}Text`, values)),
    body,
  );
}

const times = (...sizes) => sizes.join(" × ");

/** The picture of an array of the record by its name, or a line where it has none. */
function arrayPicture(glass, name, rowNames, options = {}) {
  const array = glass.get(name);
  if (!array) return make("p", { class: "quiet" }, glass.say("noNumbers"));
  const matrix = options.joined ? sideBySide(array) : matrixOf(array, options.number);
  return picture(glass, matrix, { label: options.label ?? glass.say("numbersOf"), rowNames, ...options });
}

function picture({ say }, matrix, options) {
  const told = options.columnNames
    ? (row, column) => `${row} → ${column}`
    : (row, column) => say("dimensionOf", { row, column });
  return matrixPicture(matrix, { told, ...options });
}

function rowNamesOf({ record }, stack) {
  return stack === "encoder" ? pieceTexts(record.source.tokens) : readTexts(record);
}

function tokensRead({ record }, stack) {
  if (stack === "encoder") return record.source.tokens;
  return [{ ...record.start, start: 0, end: 0, word: -1 }, ...record.target.tokens.slice(0, -1)];
}

function tokenStages(glass, { stack }) {
  const { record, say } = glass;
  const tokens = tokensRead(glass, stack);
  const names = rowNamesOf(glass, stack);
  const text = stack === "encoder" ? record.source.text : record.target.text;
  const name = stack === "encoder" ? "sourceTokens" : "targetTokens";
  return [
    stage(
      say,
      name,
      { shape: say("idsCount", { count: tokens.length }), values: { count: tokens.length } },
      make("p", { class: "quoted", dir: "auto" }, visible(text)),
      make(
        "ol",
        { class: "pieces" },
        tokens.map((token, place) => make("li", {}, make("bdi", {}, names[place]), make("span", { class: "number" }, token.id))),
      ),
    ),
  ];
}

function embeddingStages(glass, { stack }) {
  const { record, say } = glass;
  const side = stack === "encoder" ? "source" : "target";
  const { d_model, [`${side}_vocab_size`]: vocabulary } = record.model.config;
  const names = rowNamesOf(glass, stack);
  const values = { d_model, vocabulary: vocabulary.toLocaleString(), root: Math.sqrt(d_model).toFixed(2) };
  return [
    stage(
      say,
      "lookUp",
      { equation: 'e = E["id"]', shape: `${times(vocabulary, d_model)} → ${times(names.length, d_model)}`, values },
      arrayPicture(glass, `${side}_embedding.embedded`, names),
    ),
    stage(
      say,
      "scaleUp",
      { equation: `√d_{model} · e = ${values.root} · e`, shape: times(names.length, d_model), values },
      arrayPicture(glass, `${side}_embedding.scaled`, names),
    ),
  ];
}

function positionStages(glass, { stack }) {
  const { record, say } = glass;
  const side = stack === "encoder" ? "source" : "target";
  const { d_model, positions } = record.model.config;
  const names = rowNamesOf(glass, stack);
  const places = names.map((_, place) => `${place}`);
  const added = glass.get(`${side}_positions`);
  const shape = times(names.length, d_model);
  const learned = positions === "learned";
  const waves = 'PE_{pos, 2i} = "sin"(pos / 10000^{2i/d})   PE_{pos, 2i+1} = "cos"(pos / 10000^{2i/d})';
  const products = added && rowProducts(matrixOf(added));
  const distances =
    products &&
    picture(glass, products, {
      label: say("distancesTitle"),
      rowNames: places,
      columnNames: places,
      square: true,
      scale: "share",
      low: products.values.reduce((least, value) => Math.min(least, value)),
      limit: products.values.reduce((most, value) => Math.max(most, value)),
      cell: 22,
    });
  return [
    stage(
      say,
      learned ? "learnedPositions" : "sinusoids",
      { equation: learned ? 'P["pos"]' : waves, shape, values: { d_model } },
      arrayPicture(glass, `${side}_positions`, places),
    ),
    stage(
      say,
      learned ? "learnedDistances" : "distances",
      { equation: "PE_{p} · PE_{q}", shape: times(names.length, names.length), values: { half: d_model / 2 } },
      distances,
    ),
    stage(say, "sumOfBoth", { equation: "x = √d_{model} · e + PE", shape }, arrayPicture(glass, `${stack}.input`, names)),
  ];
}

function attentionStages(glass, about) {
  const { record, say } = glass;
  const { stack, sublayer, kind } = about;
  const { config } = record.model;
  const heads = stack === "encoder" ? config.num_heads : config.decoder_num_heads;
  const width = stack === "encoder" ? record.model.d_head : record.model.decoder_d_head;
  const [queries, keys] = attentionLabels(record, kind);
  const sizes = { n: queries.length, m: keys.length, heads, width, d_model: config.d_model, root: Math.sqrt(width).toFixed(3) };
  const body = make("div", { class: "stages" });
  const shown = (about.shown ??= { head: 0, step: 0 }); // the same in the next layer
  const show = () => {
    const steps = attentionSteps(glass, { kind, sublayer, head: shown.head, queries, keys, sizes });
    body.replaceChildren(Object.values(steps)[shown.step]());
  };
  const heading = (names, label, name) =>
    choice(label, names, `${shown[name]}`, (value) => {
      shown[name] = Number(value);
      show();
    });
  const numbers = Array.from({ length: heads }, (_, head) => [`${head}`, `${head + 1}`]);
  const signs = STEP_SIGNS.map((sign, at) => [`${at}`, formula(sign)]);
  const stepChoice = heading(signs, say("stageOf", { count: signs.length }), "step");
  const next = make(
    "button",
    {
      type: "button",
      click: () => {
        const inputs = [...stepChoice.querySelectorAll("input")];
        inputs[(shown.step + 1) % inputs.length].click();
      },
    },
    say("nextStage"),
  );
  show();
  return [heading(numbers, say("headOf", { heads }), "head"), stepChoice, body, make("p", {}, next)];
}

/** The stages of one head, each made when it is shown. */
function attentionSteps(glass, { kind, sublayer, head, queries, keys, sizes }) {
  const { say, record } = glass;
  const { n, m, heads, width, d_model, root } = sizes;
  const unscaled = record.edits.some((edit) => edit.kind === "scaling_off");
  const scores = glass.get(`${sublayer}.scores`);
  const scaled = scores && matrixOf(scores, head);
  const factor = unscaled ? 1 : Math.sqrt(width);
  const products = scaled && { ...scaled, values: scaled.values.map((value) => value * factor) };
  const square = { square: true, number: head, columnNames: keys };
  const missing = make("p", { class: "quiet" }, say("noNumbers"));
  const masked = glass.get(`${sublayer}.mask`);
  const projected = (name, letter, names) =>
    make(
      "div",
      {},
      make("h6", {}, formula(`${letter} = ${name === "queries" || kind !== "cross" ? "x" : "m"} W^{${letter}}`)),
      arrayPicture(glass, `${sublayer}.${name}`, names, { number: head, label: letter }),
    );
  const perHead = say("ofEachHead", { heads });
  const limit = products ? largest(products) : 1;
  return {
    project: () =>
      stage(
        say,
        kind === "cross" ? "crossProjections" : "projections",
        { shape: `${times(n, d_model)} → ${times(n, width)} ${perHead}`, values: sizes },
        projected("queries", "Q", queries),
        projected("keys", "K", keys),
        projected("values", "V", keys),
      ),
    multiply: () =>
      stage(
        say,
        "products",
        { equation: "Q K^{T}", shape: `${times(n, width)} · ${times(width, m)} → ${times(n, m)}`, values: sizes },
        products ? picture(glass, products, { label: say("productsTitle"), rowNames: queries, ...square }) : missing,
      ),
    divide: () =>
      stage(
        say,
        unscaled ? "unscaled" : "division",
        { equation: unscaled ? "Q K^{T}" : `Q K^{T} / √d_{k} = Q K^{T} / ${root}`, shape: times(n, m), values: sizes },
        arrayPicture(glass, `${sublayer}.scores`, queries, { ...square, limit, label: say("divisionTitle") }),
      ),
    hide: () =>
      masked
        ? stage(
            say,
            kind === "decoder" ? "lookAhead" : "padding",
            { equation: '"scores → −∞"', shape: times(n, m), values: sizes },
            arrayPicture(glass, `${sublayer}.masked_scores`, queries, { ...square, limit, label: say("maskTitle") }),
          )
        : stage(say, "noMask", {}),
    share: () =>
      stage(
        say,
        "softmaxWeights",
        { equation: 'A = "softmax"(s)', shape: times(n, m), values: sizes },
        arrayPicture(glass, `${sublayer}.weights`, queries, { ...square, scale: "share", label: say("softmaxWeightsTitle") }),
      ),
    mixValues: () =>
      stage(
        say,
        "weighted",
        { equation: '"head" = A V', shape: `${times(n, m)} · ${times(m, width)} → ${times(n, width)}`, values: sizes },
        arrayPicture(glass, `${sublayer}.heads`, queries, { number: head, label: say("weightedTitle") }),
      ),
    concatenate: () =>
      stage(
        say,
        "concatenation",
        { equation: `"Concat"("head"_{1}, …, "head"_{${heads}})`, shape: `${heads} · ${times(n, width)} → ${times(n, heads * width)}`, values: sizes },
        arrayPicture(glass, `${sublayer}.heads`, queries, { joined: true, label: say("concatenationTitle") }),
      ),
    mixHeads: () =>
      stage(
        say,
        "mixing",
        { equation: '"Concat"(…) W^{O}', shape: times(n, d_model), values: sizes },
        arrayPicture(glass, `${sublayer}.output`, queries, { label: say("mixingTitle") }),
      ),
  };
}

function addNormStages(glass, block) {
  return [...addStages(glass, block), ...normStages(glass, block)];
}

function addStages(glass, { stack, sublayer }) {
  const names = rowNamesOf(glass, stack);
  const shape = times(names.length, glass.record.model.config.d_model);
  return [
    stage(glass.say, "residual", { equation: 'x + "Sublayer"(x)', shape }, arrayPicture(glass, `${sublayer}.sum`, names)),
  ];
}

function normStages(glass, { stack, sublayer }) {
  const { say, record } = glass;
  const names = rowNamesOf(glass, stack);
  const { d_model, norm } = record.model.config;
  const pre = norm === "pre";
  const [before, after] = ["sum", "normalised"].map((name) => glass.get(`${sublayer}.${name}`));
  const figures =
    before && after && !pre
      ? [matrixOf(before), matrixOf(after)].map((matrix) => meanAndSpread(matrix, 0).map(readable))
      : null;
  return [
    stage(
      say,
      "normalising",
      { equation: 'γ (x − μ) / σ + β', shape: times(names.length, d_model), values: { d_model } },
      figures
        ? make("p", { class: "quiet" }, say("spreads", { token: names[0], mean: figures[0][0], spread: figures[0][1], newMean: figures[1][0], newSpread: figures[1][1] }))
        : null,
      arrayPicture(glass, `${sublayer}.normalised`, names),
    ),
  ];
}

function feedForwardStages(glass, { stack, sublayer }) {
  const { say, record } = glass;
  const names = rowNamesOf(glass, stack);
  const { config } = record.model;
  const [n, d_model, activation] = [names.length, config.d_model, config.activation];
  const d_ff = stack === "encoder" ? config.d_ff : config.decoder_d_ff;
  const hidden = glass.get(`${sublayer}.hidden`);
  const zeros = hidden ? shareOfZeros(hidden) : 0;
  const relu = activation === "relu";
  const first = relu ? '"max"(0, x W_{1} + b_{1})' : `"${activation}"(x W_{1} + b_{1})`;
  return [
    stage(
      say,
      relu ? "widening" : "wideningOther",
      { equation: first, shape: `${times(n, d_model)} → ${times(n, d_ff)}`, values: { d_model, d_ff, zeros: percent(zeros), activation } },
      arrayPicture(glass, `${sublayer}.hidden`, names, { scale: relu ? "share" : "sign", limit: hidden ? largest(hidden) : 1 }),
    ),
    stage(
      say,
      "narrowing",
      { equation: "h W_{2} + b_{2}", shape: `${times(n, d_ff)} → ${times(n, d_model)}`, values: { d_model, d_ff } },
      arrayPicture(glass, `${sublayer}.output`, names),
    ),
  ];
}

function outputStages(glass, { stack }) {
  const names = rowNamesOf(glass, stack);
  const { d_model, norm } = glass.record.model.config;
  const name = stack === "encoder" ? "memory" : "hidden";
  return [
    stage(
      glass.say,
      name,
      { equation: norm === "pre" ? '"LayerNorm"(x)' : null, shape: times(names.length, d_model) },
      arrayPicture(glass, `${stack}.output`, names),
    ),
  ];
}

function predictionStages(glass, which) {
  const { record, say } = glass;
  const { d_model, target_vocab_size: vocabulary, share_embeddings: shared } = record.model.config;
  const names = pieceTexts(record.target.tokens);
  const shape = which === "linear" ? `${times(names.length, d_model)} → ${times(names.length, vocabulary)}` : times(names.length, vocabulary);
  const bars = make("div", {});
  const show = (number) => {
    const { top, rank } = record.steps[number];
    const token = record.target.tokens[number].id;
    bars.replaceChildren(
      probabilityBars(top, token, say, which === "linear"),
      make("p", { class: "quiet" }, say("ranked", { token: names[number], rank: rank + 1, share: percent(Math.exp(record.steps[number].log_probability)) })),
    );
  };
  const first = Math.floor((names.length - 1) / 2);
  show(first);
  const options = names.map((name, number) => [`${number}`, `${number + 1}  ${name}`]);
  return [
    stage(
      say,
      which === "softmax" ? "choosing" : shared === "none" ? "logits" : "sharedLogits",
      {
        equation: which === "linear" ? "z = h W^{T}" : 'p_{i} = "exp"(z_{i}) / Σ_{j} "exp"(z_{j})',
        shape,
        values: { vocabulary: vocabulary.toLocaleString() },
      },
      select(say("stepOf"), options, `${first}`, (value) => show(Number(value))),
      bars,
    ),
  ];
}
