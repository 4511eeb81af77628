// The third view: every head of a kind of attention as a small picture, one of them large, and what heads do in numbers.

import { largest } from "./colours.js";
import { choice, inTurn, make, select } from "./elements.js";
import { matrixPicture, thumbnail } from "./matrix.js";
import { matrixOf, percent } from "./numbers.js";
import { threadPicture } from "./threads.js";
import { attentionLabels, pieceTexts, visible } from "./tokens.js";

const SHARES = { encoder: ["previous", "same", "next", "control"], decoder: ["previous", "same", "next", "control"], cross: ["previous", "aligned", "next", "control"] };
const SHORT = 16;

export function headsView(glass) {
  const { record, say } = glass;
  const kinds = Object.keys(record.attention);
  if (!kinds.length) return make("div", { class: "view" }, make("p", {}, say("noNumbers")));
  const state = { kind: kinds.at(-1), order: "layer", chosen: null };
  const bar = make("div", { class: "controls" });
  const grid = make("div", { class: "grid", role: "group", "aria-label": say("headsTitle") });
  const large = make("section", { class: "large" });

  const showLarge = () => large.replaceChildren(...largeHead(glass, state.kind, ...state.chosen));
  const showGrid = () => {
    const heads = sortedHeads(record.attention[state.kind], state.order);
    const telling = state.order === "layer" ? mostTelling(state.kind, heads) : heads[0];
    state.chosen ??= [telling.layer, telling.head];
    grid.replaceChildren(
      ...heads.map(({ layer, head, measures }) => {
        const isChosen = () => state.chosen[0] === layer && state.chosen[1] === head;
        const button = headButton(glass, state, layer, head, measures);
        button.setAttribute("aria-pressed", `${isChosen()}`);
        button.addEventListener("click", () => {
          state.chosen = [layer, head];
          grid.querySelectorAll("[aria-pressed=true]").forEach((other) => other.setAttribute("aria-pressed", "false"));
          button.setAttribute("aria-pressed", "true");
          showLarge();
        });
        return button;
      }),
    );
    paintThumbnails(glass, state.kind, heads, [...grid.children]);
    grid.style.setProperty("--heads", state.order === "layer" ? record.attention[state.kind].heads : 8);
  };
  const show = () => {
    const orders = ["layer", ...SHARES[state.kind], "entropy"].map((name) => [name, say(`by_${name}`)]);
    bar.replaceChildren(
      choice(say("kindOfAttention"), kinds.map((kind) => [kind, say(`kind_${kind}`)]), state.kind, (kind) => {
        Object.assign(state, { kind, chosen: null, order: "layer" });
        show();
        bar.querySelector("input:checked").focus();
      }),
      select(say("sortBy"), orders, state.order, (order) => {
        state.order = order;
        state.chosen = null;
        showGrid();
        showLarge();
      }),
    );
    showGrid();
    showLarge();
  };
  show();
  return make(
    "div",
    { class: "view" },
    bar,
    make("div", { class: "heads" }, make("div", {}, grid, make("p", { class: "quiet" }, say("gridHint"))), large),
  );
}

/** [{layer, head, measures}], in the order of the layers, or the head with most of a measure first. */
function sortedHeads({ measures }, order) {
  const heads = measures.flatMap((layer, at) => layer.map((one, head) => ({ layer: at, head, measures: one })));
  return order === "layer" ? heads : heads.toSorted((one, other) => other.measures[order] - one.measures[order]);
}

/** The head with the largest share of all for one thing other than a control symbol. */
function mostTelling(kind, heads) {
  const share = ({ measures }) => Math.max(...SHARES[kind].slice(0, 3).map((name) => measures[name] ?? 0));
  return heads.reduce((best, one) => (share(one) > share(best) ? one : best));
}

function nameOfWeights(record, kind, layer) {
  return `${record.attention[kind].names.replace("{layer}", layer)}.weights`;
}

/** Paints the pictures into the buttons, layer by layer; the largest weight of all has the darkest colour. */
function paintThumbnails({ record, get }, kind, heads, buttons) {
  const layers = Array.from({ length: record.attention[kind].layers }, (_, layer) => ({ layer }));
  let limit = 0;
  const decode = (one) => {
    one.weights = get(nameOfWeights(record, kind, one.layer));
    if (one.weights) limit = Math.max(limit, largest(one.weights));
  };
  const paint = ({ layer, weights }) => {
    heads.forEach((one, at) => {
      if (one.layer !== layer || !weights || !buttons[at].isConnected) return;
      buttons[at].firstChild.replaceWith(thumbnail(matrixOf(weights, one.head), "share", limit));
    });
  };
  inTurn([...layers.map((one) => () => decode(one)), ...layers.map((one) => () => paint(one))], (work) => work());
}

function headButton({ say }, { order }, layer, head, measures) {
  const name = `${layer + 1}·${head + 1}`;
  const value = order === "layer" ? null : amount(order, measures[order], say);
  return make(
    "button",
    { type: "button", class: "head", "aria-label": `${say("headName", { layer: layer + 1, head: head + 1 })}${value ? `, ${say(`by_${order}`)} ${value}` : ""}` },
    make("span", { class: "thumbnail" }),
    make("span", { class: "caption" }, make("span", {}, name), value ? make("span", { class: "number" }, value) : null),
  );
}

function amount(measure, value, say) {
  return measure === "entropy" ? say("bits", { count: value.toFixed(2) }) : percent(value);
}

function largeHead(glass, kind, layer, head) {
  const { record, say, get } = glass;
  const about = record.attention[kind];
  const measures = about.measures[layer][head];
  const name = nameOfWeights(record, kind, layer);
  const weights = get(name);
  const [read, keys] = attentionLabels(record, kind);
  const queries = kind === "cross" ? pieceTexts(record.target.tokens) : read; // the piece that the row writes
  const title = say("headName", { layer: layer + 1, head: head + 1 });
  const parts = [make("h3", {}, title), make("p", {}, sentenceAbout(kind, measures, say), " ", say(`rows_${kind}`))];
  if (weights) {
    const matrix = matrixOf(weights, head);
    const lines = threadPicture(matrix, queries, keys, { label: say("linesLabel", { title }), say, move: () => {} });
    const picture = matrixPicture(matrix, {
      label: say("matrixLabel", { title }),
      rowNames: queries,
      columnNames: keys,
      scale: "share",
      limit: largest(matrix),
      square: true,
      cell: 30,
      told: (row, column) => `${row} → ${column}`,
      move: (row) => lines.show(row),
    });
    parts.push(make("div", { class: Math.max(queries.length, keys.length) <= SHORT ? "large-pictures short" : "large-pictures" }, lines.element, picture));
  }
  parts.push(measureBars(kind, measures, queries.length, say));
  if (record.history.length) parts.push(history(glass, name, head));
  return parts;
}

/** What the head mostly does, in a sentence. */
function sentenceAbout(kind, measures, say) {
  const [name, share] = SHARES[kind]
    .map((measure) => [measure, measures[measure] ?? 0])
    .toSorted((one, other) => other[1] - one[1])[0];
  return say(share >= 0.4 ? `does_${name}` : "does_spread", { share: percent(share), bits: measures.entropy.toFixed(2) });
}

function measureBars(kind, measures, count, say) {
  const most = Math.log2(Math.max(2, count));
  const rows = [...SHARES[kind], "entropy"].map((measure) => {
    const row = make(
      "li",
      {},
      make("span", { class: "piece" }, say(`by_${measure}`)),
      make("span", { class: "track" }, make("span", { class: "bar" })),
      make("span", { class: "number" }, amount(measure, measures[measure], say)),
    );
    const share = measure === "entropy" ? measures.entropy / most : measures[measure];
    row.style.setProperty("--share", Math.min(1, share).toFixed(3));
    return row;
  });
  return make("section", {}, make("h4", {}, say("measuresTitle")), make("ol", { class: "bars measures" }, rows), make("p", { class: "quiet" }, say("measuresText")));
}

/** The same head in earlier models of the run. */
function history({ record, get, say }, name, head) {
  const moments = [...record.history.map((moment, number) => [moment.name, get(`history.${number}.${name}`)]), [say("now"), get(name)]];
  return make(
    "section",
    {},
    make("h4", {}, say("historyTitle")),
    make(
      "ol",
      { class: "moments" },
      moments.map(([moment, weights]) => make("li", {}, weights ? thumbnail(matrixOf(weights, head)) : null, make("span", { class: "caption" }, visible(moment)))),
    ),
    make("p", { class: "quiet" }, say("historyText")),
  );
}
