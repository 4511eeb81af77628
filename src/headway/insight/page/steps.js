// The fourth view: decoding, token by token.

import { probabilityBars } from "./bars.js";
import { make, makeSvg } from "./elements.js";
import { matrixPicture } from "./matrix.js";
import { matrixOf, percent } from "./numbers.js";
import { brief, pieceTexts, readTexts, visible } from "./tokens.js";
import { beamTree, finishedBy, treeLegend } from "./tree.js";

/** Signs of the buttons, in a box of 16. */
const SIGNS = {
  play: "M4 2L14 8L4 14Z",
  pause: "M3 2H7V14H3ZM9 2H13V14H9Z",
  toStart: "M2 2H4V14H2ZM14 2L5 8L14 14Z",
  stepBack: "M12 2L3 8L12 14Z",
  stepOn: "M3 2H5V14H3ZM7 2L14 8L7 14Z",
  toEnd: "M12 2H14V14H12ZM2 2L11 8L2 14Z",
};
const PAUSE = 900;
const COLUMN = 176;

export function stepsView(glass) {
  const { record, say } = glass;
  const count = record.steps.length;
  const pieces = pieceTexts(record.target.tokens);
  const state = { step: 0, timer: null };
  const button = (name, act) => make("button", { type: "button", "aria-label": say(name), title: say(name), click: act }, sign(name));
  const slider = make("input", { type: "range", min: 0, max: count - 1, value: 0, "aria-label": say("stepSlider"), input: () => halt(() => go(Number(slider.value))) });
  const play = button("play", () => (state.timer ? halt() : start()));
  play.classList.add("primary");
  const where = make("span", { class: "quiet number" });
  const growing = make("p", { class: "growing", dir: "auto" });
  const [bars, mask, tree] = ["bars-place", "mask-place", "tree-place"].map((name) => make("div", { class: name }));

  const go = (step) => {
    state.step = Math.max(0, Math.min(count - 1, step));
    slider.value = state.step;
    where.textContent = say("stepOfSteps", { step: state.step + 1, count });
    show();
  };
  const label = (name) => {
    play.replaceChildren(sign(name));
    play.setAttribute("aria-label", say(name));
    play.title = say(name);
  };
  const halt = (then) => {
    clearInterval(state.timer);
    state.timer = null;
    label("play");
    then?.();
  };
  const start = () => {
    if (state.step === count - 1) go(0);
    label("pause");
    state.timer = setInterval(() => {
      if (!play.isConnected || state.step >= count - 1) halt();
      else go(state.step + 1);
    }, PAUSE);
  };
  const show = () => {
    const { step } = state;
    growing.replaceChildren(
      ...[visible(record.start.piece), ...pieces].map((piece, place) => {
        const look = place <= step ? "done" : place === step + 1 ? "next" : "later";
        return make("bdi", { class: place === 0 ? `${look} control` : look }, brief(piece, 24));
      }),
    );
    const { top, rank, log_probability: logarithm } = record.steps[step];
    const values = { token: brief(pieces[step], 24), share: percent(Math.exp(logarithm)), rank: rank + 1 };
    bars.replaceChildren(
      probabilityBars(top, record.target.tokens[step].id, say),
      make("p", { class: "quiet" }, say(rank === 0 ? "tookFirst" : "tookOther", values)),
    );
    mask.replaceChildren(maskUntil(glass, step));
    if (record.beam) showTree(glass, tree, step);
  };

  const view = make(
    "div",
    { class: "view" },
    make(
      "div",
      { class: "player" },
      button("toStart", () => halt(() => go(0))),
      button("stepBack", () => halt(() => go(state.step - 1))),
      play,
      button("stepOn", () => halt(() => go(state.step + 1))),
      button("toEnd", () => halt(() => go(count - 1))),
      slider,
      where,
    ),
    growing,
    make(
      "div",
      { class: "two" },
      make("section", {}, make("h3", {}, say("topTitle")), make("p", { class: "quiet" }, say("topText")), bars),
      make("section", {}, make("h3", {}, say("maskHeading")), make("p", { class: "quiet" }, say("maskText")), mask),
    ),
    make(
      "section",
      {},
      make("h3", {}, say("treeTitle")),
      record.beam
        ? [make("p", { class: "quiet" }, say("treeText", { size: record.beam.beam_size, penalty: record.beam.length_penalty })), treeLegend(say), tree]
        : make("p", { class: "quiet" }, say("noBeam")),
    ),
  );
  new ResizeObserver(() => record.beam && showTree(glass, tree, state.step)).observe(tree);
  go(0);
  return view;
}

function sign(name) {
  return makeSvg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, makeSvg("path", { d: SIGNS[name] }));
}

/** What the decoder may see: the rows until now as they are, those to come still empty. */
function maskUntil({ record, get, say }, step) {
  const room = readTexts(record);
  const names = room.map((name, place) => (place <= step ? name : ""));
  const size = names.length;
  const array = get("decoder.layers.0.self_attention.mask");
  const values = array ? Float32Array.from(matrixOf(array).values) : new Float32Array(size * size).fill(1);
  values.fill(0, (step + 1) * size);
  return matrixPicture(
    { rows: size, columns: size, values },
    {
      label: say("maskTitle"),
      rowNames: names,
      columnNames: names,
      room,
      square: true,
      scale: "share",
      limit: 1.6,
      cell: 22,
      mark: step,
      told: (row, column) => `${row} → ${column}`,
    },
  );
}

function showTree(glass, place, step) {
  if (!place.clientWidth) return;
  const columns = Math.max(2, Math.floor((place.clientWidth + 40) / COLUMN));
  const last = Math.min(step, glass.record.beam.steps.length - 1);
  const finished = finishedBy(glass.record, last);
  const { say } = glass;
  place.replaceChildren(
    make("div", { class: "scroll" }, beamTree(glass, Math.max(0, last - columns + 1), last)),
    make("h4", {}, say("finishedTitle")),
    finished.length
      ? make(
          "ol",
          { class: "alternatives" },
          finished.map((one) =>
            make(
              "li",
              { class: one.won ? "won" : null },
              make("bdi", {}, visible(one.text)),
              make("span", { class: "number" }, say("ranking", { score: one.score.toFixed(2).replace("-", "−"), ranking: one.ranking.toFixed(2).replace("-", "−") })),
            ),
          ),
        )
      : make("p", { class: "quiet" }, say("noneFinished")),
  );
}
