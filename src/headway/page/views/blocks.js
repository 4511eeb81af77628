// The inside of the machine's blocks: for each its stages, with equation, shapes and the numbers of this sentence.

import { attentionStages } from "./attention_blocks.js";
import { probabilityBars } from "./bars.js";
import { largest } from "./colours.js";
import { make, select } from "./elements.js";
import { decimal, matrixOf, meanAndSpread, percent, probability, range, rowOf, rowProducts, shareOfZeros, sinusoids, whole } from "./numbers.js";
import { arrayPicture, isEdited, note, picture, rowsOf, stage, times } from "./stages.js";
import { brief, pieceTexts, readTexts, visible } from "./tokens.js";

const MANY_PLACES = 50;

/** Each takes the glass box and the block: {stack, sublayer, kind, shown}. -> elements */
export const blockContents = {
  tokens: tokenStages,
  embedding: embeddingStages,
  positions: positionStages,
  attention: attentionStages,
  addNorm: (glass, block) => [...addStages(glass, block), ...normStages(glass, block)],
  norm: normStages,
  add: addStages,
  feedForward: feedForwardStages,
  output: outputStages,
  linear: linearStages,
  softmax: softmaxStages,
};

function tokensRead({ record }, stack) {
  if (stack === "encoder") return record.source.tokens;
  return [{ ...record.start, start: 0, end: 0, word: -1 }, ...record.target.tokens.slice(0, -1)];
}

function tokenStages(glass, { stack }) {
  const { record, say } = glass;
  const tokens = tokensRead(glass, stack);
  const names = stack === "encoder" ? pieceTexts(tokens) : readTexts(record);
  const text = stack === "encoder" ? record.source.text : record.target.text;
  return [
    stage(
      say,
      stack === "encoder" ? "sourceTokens" : "targetTokens",
      { shape: say("idsCount", { count: tokens.length }) },
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
  const rows = rowsOf(glass, stack);
  const size = times(rows.rowNames.length, d_model);
  const values = { d_model, vocabulary: whole(vocabulary), root: Math.sqrt(d_model).toFixed(2) };
  return [
    stage(
      say,
      "lookUp",
      { equation: 'e = E["id"]', shape: `${times(vocabulary, d_model)} → ${size}`, values },
      arrayPicture(glass, `${side}_embedding.embedded`, rows),
    ),
    stage(
      say,
      "scaleUp",
      { equation: `√d_{model} · e = ${values.root} · e`, shape: size, values },
      arrayPicture(glass, `${side}_embedding.scaled`, rows),
      stack === "decoder" ? note(say("embeddedRows", { written: rows.rowNames[0], read: readTexts(record)[0] })) : null,
    ),
  ];
}

function positionStages(glass, { stack }) {
  const { record, say } = glass;
  const { d_model, positions, norm_embeddings } = record.model.config;
  const rows = rowsOf(glass, stack);
  const shape = times(rows.rowNames.length, d_model);
  const input = (sum) => (norm_embeddings ? `x = "LayerNorm"(${sum})` : `x = ${sum}`);
  const off = isEdited(glass, "positions_off");
  const sum = (equation) => stage(say, off ? "sumWithout" : "sumOfBoth", { equation, shape }, arrayPicture(glass, `${stack}.input`, rows));
  if (off) return [stage(say, "positionsOff", { equation: "PE = 0", shape }), sum(input("√d_{model} · e"))];
  const name = `${stack === "encoder" ? "source" : "target"}_positions`;
  const added = glass.get(name);
  const learned = positions === "learned";
  const waves =
    positions === "fairseq"
      ? 'PE_{pos, i} = "sin"((pos + 2) / 10000^{i/(d/2-1)})   PE_{pos, d/2+i} = "cos"((pos + 2) / 10000^{i/(d/2-1)})'
      : 'PE_{pos, 2i} = "sin"(pos / 10000^{2i/d})   PE_{pos, 2i+1} = "cos"(pos / 10000^{2i/d})';
  const places = { rowNames: rows.rowNames.map((_, place) => `${place}`), side: rows.side };
  return [
    stage(
      say,
      learned ? "learnedPositions" : "sinusoids",
      { title: "sinusoids", equation: learned ? 'P["pos"]' : waves, shape, values: { d_model } },
      arrayPicture(glass, name, places),
    ),
    stage(
      say,
      learned ? "learnedDistances" : "distances",
      { equation: "PE_{p} · PE_{q}", shape: times(rows.rowNames.length, rows.rowNames.length), values: { half: d_model / 2 } },
      added ? later(() => distancePicture(glass, matrixOf(added), 22)) : note(say("noNumbers")),
    ),
    positions === "sinusoidal" ? manyPlaces(glass, d_model) : null,
    sum(input("√d_{model} · e + PE")),
  ].filter((part) => part);
}

/** A place that is filled in the next frame, so that the page answers first. */
function later(picture) {
  const place = make("div", {});
  requestAnimationFrame(() => setTimeout(() => place.append(picture())));
  return place;
}

/** The products of each place with each, as a picture. */
function distancePicture(glass, table, cell) {
  const products = rowProducts(table);
  const [low, limit] = range(products.values);
  const names = Array.from({ length: table.rows }, (_, place) => `${place}`);
  return picture(glass, products, {
    label: glass.say("distancesTitle"),
    rowNames: names,
    columnNames: names,
    square: true,
    scale: "share",
    low,
    limit,
    cell,
  });
}

/** The sine and cosine table by itself, longer than most sentences, in a part that opens. */
function manyPlaces(glass, d_model) {
  const { say } = glass;
  const title = say("manyPlacesTitle", { count: MANY_PLACES });
  const rowNames = Array.from({ length: MANY_PLACES }, (_, place) => `${place}`);
  const details = make("details", { class: "stage" }, make("summary", {}, title));
  const fill = () => {
    const table = sinusoids(MANY_PLACES, d_model);
    details.append(
      make("p", { class: "shape" }, `${times(MANY_PLACES, d_model)} → ${times(MANY_PLACES, MANY_PLACES)}`),
      make("p", {}, say("manyPlacesText", { count: MANY_PLACES })),
      picture(glass, table, { label: title, rowNames }),
      distancePicture(glass, table, 8),
    );
  };
  details.addEventListener("toggle", fill, { once: true });
  return details;
}

function addStages(glass, { stack, sublayer }) {
  const rows = rowsOf(glass, stack);
  const { d_model, norm } = glass.record.model.config;
  const equation = norm === "pre" ? 'x + "Sublayer"("LayerNorm"(x))' : 'x + "Sublayer"(x)';
  const length = ofChosen(glass, rows, "vectorLength", [`${sublayer}.sum`], (own) => ({ length: decimal(Math.hypot(...own)) }));
  return [
    stage(glass.say, "residual", { equation, shape: times(rows.rowNames.length, d_model) }, length, arrayPicture(glass, `${sublayer}.sum`, rows)),
  ];
}

function normStages(glass, { stack, sublayer }) {
  const { say, record } = glass;
  const rows = rowsOf(glass, stack);
  const { d_model, norm } = record.model.config;
  const spreads = ofChosen(glass, rows, "spreads", [normReads(glass, sublayer, norm), `${sublayer}.normalised`], (before, after) => {
    const [mean, spread, newMean, newSpread] = [before, after].flatMap(meanAndSpread).map((value) => decimal(value));
    return { mean, spread, newMean, newSpread };
  });
  const equation = norm === "pre" ? "γ (x − μ) / √(σ^{2} + ε) + β" : 'γ (y − μ) / √(σ^{2} + ε) + β,   y = x + "Sublayer"(x)';
  return [
    stage(
      say,
      "normalising",
      { equation, shape: times(rows.rowNames.length, d_model), values: { d_model } },
      spreads,
      arrayPicture(glass, `${sublayer}.normalised`, rows),
    ),
  ];
}

/** Says the figures of the chosen token, or of the first: the text of this name. figures(its row of each array) -> values */
function ofChosen(glass, { rowNames, side }, text, names, figures) {
  const matrices = names.map((name) => glass.get(name)).map((array) => array && matrixOf(array));
  if (!matrices.every((one) => one)) return null;
  const line = make("p", { class: "quiet", "data-rows": side, chosen: () => show() });
  const show = () => {
    const row = glass.chosen[side] ?? 0;
    line.textContent = glass.say(text, { token: rowNames[row], ...figures(...matrices.map((one) => rowOf(one, row))) });
  };
  show();
  return line;
}

/** The array that a layer norm reads: the sum beside it, or, where it comes first, what the sub-layer before gave. */
function normReads({ get }, residual, norm) {
  if (norm !== "pre") return `${residual}.sum`;
  const layer = residual.slice(0, residual.lastIndexOf("."));
  const sums = { self_residual: [], cross_residual: ["self"], feed_forward_residual: ["cross", "self"] }[residual.slice(layer.length + 1)];
  return [...sums.map((name) => `${layer}.${name}_residual.sum`), `${layer}.input`].find((name) => get(name));
}

function feedForwardStages(glass, { stack, sublayer }) {
  const { say, record } = glass;
  const rows = rowsOf(glass, stack);
  const { config } = record.model;
  const [n, d_model, activation] = [rows.rowNames.length, config.d_model, config.activation];
  const d_ff = stack === "encoder" ? config.d_ff : config.decoder_d_ff;
  const hidden = glass.get(`${sublayer}.hidden`);
  const relu = activation === "relu";
  const values = { d_model, d_ff, zeros: hidden ? shareOfZeros(hidden) : "–", activation };
  return [
    stage(
      say,
      relu ? "widening" : "wideningOther",
      {
        title: "widening",
        equation: relu ? 'h = "max"(0, x W_{1} + b_{1})' : `h = "${activation}"(x W_{1} + b_{1})`,
        shape: `${times(n, d_model)} → ${times(n, d_ff)}`,
        values,
      },
      relu ? ofChosen(glass, rows, "features", [`${sublayer}.hidden`], (own) => ({ d_ff, count: own.filter((value) => value > 0).length })) : null,
      arrayPicture(glass, `${sublayer}.hidden`, rows, { scale: relu ? "share" : "sign", limit: hidden ? largest(hidden) : 1 }),
    ),
    stage(
      say,
      "narrowing",
      { equation: "h W_{2} + b_{2}", shape: `${times(n, d_ff)} → ${times(n, d_model)}`, values },
      arrayPicture(glass, `${sublayer}.output`, rows),
    ),
  ];
}

function outputStages(glass, { stack }) {
  const rows = rowsOf(glass, stack);
  const { d_model, norm } = glass.record.model.config;
  return [
    stage(
      glass.say,
      stack === "encoder" ? "memory" : "hidden",
      { equation: norm === "pre" ? '"LayerNorm"(x)' : null, shape: times(rows.rowNames.length, d_model) },
      arrayPicture(glass, `${stack}.output`, rows),
    ),
  ];
}

/** The output of the decoder, and of one step the largest logits. */
function linearStages(glass) {
  const { record, say } = glass;
  const { d_model, target_vocab_size: vocabulary, share_embeddings: shared, output_bias: biased } = record.model.config;
  const rows = rowsOf(glass, "decoder");
  const n = rows.rowNames.length;
  return [
    stage(
      say,
      shared === "none" ? "logits" : "sharedLogits",
      {
        title: "logits",
        equation: biased ? "z = h W^{T} + b" : "z = h W^{T}",
        shape: `${times(n, d_model)} → ${times(n, vocabulary)}`,
        values: { vocabulary: whole(vocabulary) },
      },
      arrayPicture(glass, "decoder.output", rows, { label: "h" }),
      isEdited(glass, "look_ahead_off") ? note(say("readAnew")) : null,
      barsOfStep(glass, true),
    ),
  ];
}

function softmaxStages(glass) {
  const { record, say } = glass;
  const vocabulary = record.model.config.target_vocab_size;
  return [
    stage(
      say,
      record.target.given ? "choosingGiven" : "choosing",
      {
        title: "choosing",
        equation: 'p_{i} = "exp"(z_{i}) / Σ_{j} "exp"(z_{j})',
        shape: times(record.target.tokens.length, vocabulary),
        values: { vocabulary: whole(vocabulary) },
      },
      barsOfStep(glass, false),
    ),
  ];
}

/** The likeliest tokens of the step that is chosen, here or elsewhere. */
function barsOfStep(glass, logits) {
  const { record, say } = glass;
  const names = pieceTexts(record.target.tokens);
  const bars = make("div", {});
  const options = names.map((name, number) => [`${number}`, `${number + 1}  ${brief(name)}`]);
  const chooser = select(say("stepOf"), options, null, (value) => glass.choose("target", Number(value)));
  const show = () => {
    const number = glass.chosen.target ?? Math.floor((names.length - 1) / 2);
    const { top, rank, log_probability: logarithm } = record.steps[number];
    chooser.querySelector("select").value = `${number}`;
    bars.replaceChildren(
      probabilityBars(top, record.target.tokens[number].id, say, logits),
      note(say("ranked", { token: names[number], rank: rank + 1, share: percent(probability(logarithm)) })),
    );
  };
  show();
  return make("div", { "data-rows": "target", chosen: show }, chooser, bars);
}
