// Attention as one scene: Q, K^T, the scores, the weights, V and the output of one head, side by side.

import { colourStrip, largest } from "./colours.js";
import { ARROWS, make, whenSized } from "./elements.js";
import { readable } from "./numbers.js";
import { cellAt, sceneLayout } from "./scene_layout.js";
import { paintScene, sceneImages } from "./scene_paint.js";
import { toldOf } from "./scene_words.js";

/** The scores' values at each stage, and the parts that stand out; the others are faint. */
const STAGES = {
  whole: ["masked", null],
  project: ["masked", ["queries", "keys", "values"]],
  products: ["products", ["queries", "keys", "scores"]],
  division: ["scaled", ["scores"]],
  mask: ["masked", ["scores"]],
  softmax: ["masked", ["scores", "weights"]],
  mixing: ["masked", ["weights", "values", "output"]],
};
const [LOWEST, BESIDE] = [300, 400]; // pixels: the least height of a scene, and what stands beside an open block of the machine in its window
const TITLES = { products: "Q Kᵀ", scaled: "Q Kᵀ / √dₖ", masked: "Q Kᵀ / √dₖ", unscaled: "Q Kᵀ" };

/**
 * attention: the matrices {rows, columns, values} queries, keys, values, products, scaled, masked, weights, output; width,
 * the columns of the keys; scaling, whether scores are divided; scale, of the colours of weights; side, whose tokens the
 * rows are; rowNames, columnNames, which may be null. -> {element, show(stage), load(attention)}
 */
export function attentionScene(glass, attention, label) {
  const { say } = glass;
  const readout = make("div", { class: "told-numbers", "aria-live": "polite" });
  const legend = make("p", { class: "legend-line quiet" });
  const canvas = make("canvas", {
    tabindex: 0,
    role: "application",
    "aria-roledescription": say("sceneRole"),
    "aria-label": `${label}. ${say("sceneKeys")}`,
    "data-rows": attention.side ?? null,
  });
  const figure = make("figure", { class: "scene" }, readout, make("div", { class: "scroll" }, canvas), legend);
  const scene = { glass, attention, canvas, figure, readout, legend, stage: "whole", at: null, layout: null, images: null };
  point(scene, null);
  listen(scene);
  whenSized(figure, () => {
    place(scene);
    draw(scene);
  });
  const refresh = () => {
    scene.images = null;
    if (figure.clientWidth) place(scene);
  };
  return {
    element: figure,
    show: (stage) => {
      scene.stage = stage;
      refresh();
      point(scene, scene.at);
    },
    load: (other) => {
      scene.attention = other;
      canvas.dataset.rows = other.side ?? "";
      refresh();
      const { part, row, column } = scene.at ?? {};
      const room = scene.layout?.parts[part];
      point(scene, room && row < room.rows && column < room.columns ? scene.at : null);
    },
  };
}

function place(scene) {
  const { queries, keys, values, rowNames, columnNames } = scene.attention;
  const sizes = { n: queries.rows, m: keys.rows, d: queries.columns, v: values.columns };
  scene.layout = sceneLayout(sizes, scene.figure.clientWidth, Math.max(LOWEST, window.innerHeight - BESIDE), rowNames, columnNames);
}

function draw(scene) {
  const { glass, attention, canvas, figure, layout, stage, at } = scene;
  if (!layout) return;
  const [shown, bright] = STAGES[stage];
  const scores = attention[shown];
  const limits = Object.fromEntries(["queries", "keys", "values", "output"].map((name) => [name, largest(attention[name])]));
  limits.scores = largest(scores);
  scene.images ??= sceneImages(attention, scores, limits);
  const title = TITLES[attention.scaling ? shown : "unscaled"];
  const chosen = attention.side ? glass.chosen[attention.side] : null;
  paintScene(canvas, getComputedStyle(figure), { images: scene.images, limits, layout, attention, scores, scoresTitle: title, bright, at, chosen });
  scene.legend.replaceChildren(...legendOf(title, scores, attention.scale));
}

/** The ends of the two scales. */
function legendOf(title, scores, scale) {
  const end = (value) => make("span", {}, readable(value));
  const most = largest(scores);
  return [
    make("span", { class: "ends" }, make("i", {}, title), end(-most), colourStrip("sign"), end(most)),
    make("span", { class: "ends" }, make("i", {}, "A"), "0", colourStrip(scale), "1"),
  ];
}

/** Makes a cell stand out and says how its number came to be; null: none. */
function point(scene, at) {
  const { glass, attention, readout } = scene;
  scene.at = at;
  draw(scene);
  readout.replaceChildren(...(at ? toldOf(glass.say, attention, at) : [make("p", { class: "quiet" }, glass.say("sceneHint"))]));
}

function listen(scene) {
  const { glass, canvas } = scene;
  const same = (one, other) => one?.part === other?.part && one?.row === other?.row && one?.column === other?.column;
  const under = ({ offsetX, offsetY }) => cellAt(scene.layout, offsetX, offsetY);
  const go = (at) => at && !same(at, scene.at) && point(scene, at);
  canvas.addEventListener("pointermove", (event) => go(under(event)));
  canvas.addEventListener("pointerdown", (event) => go(under(event)));
  canvas.addEventListener("click", (event) => choose(under(event)));
  canvas.addEventListener("chosen", () => canvas.isConnected && draw(scene));
  const choose = (at) => at && scene.attention.side && !["keys", "values"].includes(at.part) && glass.choose(scene.attention.side, at.row);
  canvas.addEventListener("keydown", (event) => {
    if (event.key === "Enter") choose(scene.at);
    const step = ARROWS[event.key];
    if (!step) return;
    event.preventDefault();
    const { part, row, column } = scene.at ?? { part: "scores", row: -step[0], column: -step[1] };
    const { rows, columns } = scene.layout.parts[part];
    const within = (to, count) => Math.max(0, Math.min(count - 1, to));
    const far = event.shiftKey ? 8 : 1;
    go({ part, row: within(row + far * step[0], rows), column: within(column + far * step[1], columns) });
  });
}
