// Every head of a kind of attention as a small picture, one of them large, and what heads do in numbers.

import { nameOfWeights } from "./attention_of_head.js";
import { barRow } from "./bars.js";
import { headColour, largest } from "./colours.js";
import { choice, columnsFor, inTurn, make, select } from "./elements.js";
import { amount, measuredHeads, measureName, sentenceAbout, SHARES, shortLabel } from "./head_labels.js";
import { headImportance } from "./head_importance.js";
import { tokenLights } from "./lighting.js";
import { matrixPicture, thumbnail } from "./matrix.js";
import { decimal, matrixOf, whole } from "./numbers.js";
import { entropy } from "./sampling.js";
import { sideBySide } from "./side_by_side.js";
import { isEdited } from "./stages.js";
import { threadPicture } from "./threads.js";
import { attentionLabels, visible } from "./tokens.js";

const SHORT = 16;

export function headsView(glass) {
  const { record, say } = glass;
  const kinds = Object.keys(record.attention);
  if (!kinds.length) return make("div", { class: "view" }, make("p", {}, say("noNumbers")));
  const state = chosenHead(glass);
  const bar = make("div", { class: "controls" });
  const grid = make("div", { class: "grid", role: "group", "aria-label": say("headsTitle") });
  const lights = make("div", {});
  const large = make("section", { class: "large" });
  const importance = headImportance(glass);

  const beside = sideBySide(glass, state, largeHead);
  const showLarge = () => {
    large.replaceChildren(...largeHead(glass, state.kind, ...state.chosen));
    beside.show();
  };
  const showHeads = () => {
    showGrid(glass, grid, state, showLarge);
    showLarge();
  };
  const show = () => {
    const orders = ["layer", ...SHARES[state.kind], "entropy"].map((name) => [name, measureName(say, state.kind, name)]);
    bar.replaceChildren(
      choice(say("kindOfAttention"), kinds.map((kind) => [kind, say(`kind_${kind}`)]), state.kind, (kind) => {
        Object.assign(state, { kind, chosen: null, order: "layer" });
        show();
        bar.querySelector("input:checked").focus();
      }),
      select(say("sortBy"), orders, state.order, (order) => {
        Object.assign(state, { order, chosen: null });
        showHeads();
      }),
    );
    lights.replaceChildren(tokenLights(glass, grid, ...attentionLabels(record, state.kind)));
    showHeads();
    importance.show(state.kind);
  };
  const heads = make("div", { class: "heads" }, make("div", {}, grid, make("p", { class: "quiet" }, say("gridHint")), importance.element), large);
  show();
  return make("div", { class: "view" }, bar, lights, heads, beside.element);
}

/** The view's choices: {kind, order, chosen: [layer, head] or null}; they stay for every record of the model. */
export function chosenHead(glass) {
  return glass.kept("heads", { kind: Object.keys(glass.record.attention).at(-1), order: "layer", chosen: null }, true);
}

function showGrid(glass, grid, state, showLarge) {
  const about = glass.record.attention[state.kind];
  const [rows, columns] = attentionLabels(glass.record, state.kind);
  grid.style.setProperty("--shape", `${columns.length} / ${rows.length}`);
  const heads = sortedHeads(glass.record, state);
  const telling = state.order === "layer" ? mostTelling(state.kind, heads) : heads[0];
  state.chosen ??= [telling.layer, telling.head];
  const buttons = heads.map(({ layer, head, measures }) => {
    const choose = () => {
      state.chosen = [layer, head];
      buttons.forEach((other) => other.setAttribute("aria-pressed", `${other === button}`));
      showLarge();
    };
    const button = headButton(glass, state, { layer, head, measures }, choose);
    return button;
  });
  grid.replaceChildren(...buttons);
  grid.classList.toggle("sorted", state.order !== "layer");
  grid.parentElement.parentElement.style.setProperty("--heads", columnsFor(about.heads));
  paintThumbnails(glass, grid, state.kind, heads, buttons);
}

/** The heads in the order of measuredHeads, or those with most of a measure first. */
function sortedHeads(record, { kind, order }) {
  const heads = measuredHeads(record, kind);
  return order === "layer" ? heads : heads.toSorted((one, other) => other.measures[order] - one.measures[order]);
}

/** The head with the largest share of all for one thing other than a control symbol. */
function mostTelling(kind, heads) {
  const share = ({ measures }) => Math.max(...SHARES[kind].slice(0, 3).map((name) => measures[name] ?? 0));
  return heads.reduce((best, one) => (share(one) > share(best) ? one : best));
}

/** Paints the pictures into the buttons, layer by layer; the largest weight of all has the darkest colour. */
function paintThumbnails({ record, get }, grid, kind, heads, buttons) {
  const layers = Array.from({ length: record.attention[kind].layers }, (_, layer) => ({ layer }));
  let limit = 0;
  const decode = (one) => {
    one.weights = get(nameOfWeights(record, kind, one.layer));
    if (one.weights) limit = Math.max(limit, largest(one.weights));
  };
  const paint = ({ layer, weights }) => {
    heads.forEach((one, at) => {
      if (one.layer !== layer || !weights) return;
      buttons[at].firstChild.replaceChildren(thumbnail(matrixOf(weights, one.head), { limit, scale: one.head }));
    });
  };
  inTurn(grid, [...layers.map((one) => () => decode(one)), ...layers.map((one) => () => paint(one))], (work) => work());
}

function headButton(glass, { kind, order, chosen }, { layer, head, measures }, choose) {
  const { say } = glass;
  const label = shortLabel(glass, kind, measures);
  const value = order === "layer" ? null : amount(order, measures[order], say);
  const name = say("headName", { layer: layer + 1, head: head + 1 });
  const number = value ? make("span", { class: "number" }, value) : null;
  const place = make("b", {}, make("span", { class: "swatch", "aria-hidden": "true" }), `${layer + 1}·${head + 1}`);
  return make(
    "button",
    {
      type: "button",
      class: "head",
      "aria-pressed": `${chosen[0] === layer && chosen[1] === head}`,
      "--head": headColour(head),
      click: choose,
    },
    make("span", { class: "small-picture" }),
    make("span", { class: "caption" }, place, " ", make("span", { class: "label" }, label), " ", number),
    make("span", { class: "unseen" }, value ? ` ${name}, ${measureName(say, kind, order)}` : ` ${name}`),
  );
}

function largeHead(glass, kind, layer, head) {
  const { record, say, get } = glass;
  const measures = record.attention[kind].measures[layer][head];
  const name = nameOfWeights(record, kind, layer);
  const weights = get(name);
  const [queries, keys] = attentionLabels(record, kind);
  const title = say("headName", { layer: layer + 1, head: head + 1 });
  return [
    make("h3", {}, title),
    make("p", {}, sentenceAbout(glass, kind, measures)),
    weights ? largePictures(glass, kind, matrixOf(weights, head), queries, keys, title, head) : null,
    make("p", { class: "quiet" }, say(kind === "decoder" && isEdited(glass, "look_ahead_off") ? "maskOffText" : `rows_${kind}`)),
    measureBars(kind, measures, keys.length, say),
    record.history.length ? history(glass, name, head, title) : null,
  ].filter((part) => part);
}

/** The lines and the matrix of a head; where the reader is in the matrix, the lines show. */
function largePictures(glass, kind, matrix, queries, keys, title, head) {
  const { say } = glass;
  const lines = threadPicture(glass, matrix, queries, keys, say("linesLabel", { title }), headColour(head));
  const picture = matrixPicture(glass, matrix, {
    label: say("matrixLabel", { title }),
    rowNames: queries,
    columnNames: keys,
    side: kind === "encoder" ? "source" : "target",
    scale: head,
    limit: largest(matrix),
    square: true,
    cell: 30,
    told: (row, column) => `${row} → ${column}`,
    move: (row) => lines.show(row),
  });
  const look = Math.max(queries.length, keys.length) <= SHORT ? "large-pictures short" : "large-pictures";
  return make("div", { class: look }, lines.element, picture);
}

/** keys: how many there are to look at; attention that is spread over all of them has the largest entropy. */
function measureBars(kind, measures, keys, say) {
  const most = Math.log2(Math.max(2, keys));
  const rows = [...SHARES[kind], "entropy"].map((measure) => {
    const share = measure === "entropy" ? measures.entropy / most : measures[measure];
    return barRow(measureName(say, kind, measure), amount(measure, measures[measure], say), share);
  });
  return make(
    "section",
    {},
    make("h4", {}, say("measuresTitle")),
    make("ol", { class: "bars measures" }, rows),
    make("p", { class: "quiet" }, say("measuresText", { most: decimal(most), count: keys })),
  );
}

/** The same head in other models of the run, and what they made of the translation, this model among them. */
function history({ record, get, say }, name, head, title) {
  const stepOf = (step) => say("trainingStep", { step: whole(step) });
  const others = record.history.map((moment, number) => ({
    title: Number.isFinite(moment.step) ? stepOf(moment.step) : moment.name,
    score: moment.score,
    weights: get(`history.${number}.${name}`),
  }));
  const step = record.inspected_step;
  const known = Number.isFinite(step);
  const own = { title: known ? `${stepOf(step)} (${say("now")})` : say("now"), score: record.target.score, weights: get(name) };
  const later = known ? record.history.findIndex((moment) => moment.step > step) : -1;
  const moments = others.toSpliced(later < 0 ? others.length : later, 0, own).map((moment) => {
    const matrix = moment.weights ? matrixOf(moment.weights, head) : null;
    const bits = say("bits", { count: decimal(matrix ? entropy(matrix.values) / matrix.rows : null) });
    const label = say("momentLabel", { title, moment: visible(moment.title), bits });
    return make(
      "li",
      {},
      matrix ? thumbnail(matrix, { label, scale: head }) : null,
      make("span", { class: "caption" }, make("b", {}, visible(moment.title)), make("span", {}, bits), make("span", {}, say("logProbability", { score: decimal(moment.score) }))),
    );
  });
  return make(
    "section",
    {},
    make("h4", {}, say("historyTitle")),
    make("ol", { class: "moments" }, moments),
    make("p", { class: "quiet" }, say("historyText")),
  );
}
