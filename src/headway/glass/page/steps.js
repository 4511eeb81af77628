// The fourth view: decoding, token by token.

import { probabilityBars } from "./bars.js";
import { make, sign } from "./elements.js";
import { matrixPicture } from "./matrix.js";
import { decimal, matrixOf, percent, probability } from "./numbers.js";
import { isEdited, rowsOf } from "./stages.js";
import { brief, pieceTexts, visible } from "./tokens.js";
import { beamList, beamTree, treeLegend } from "./tree.js";

const PAUSE = 900;
const COLUMN = 176;

export function stepsView(glass) {
  const { record, say } = glass;
  const growing = make("p", { class: "growing", dir: "auto" });
  const [bars, mask, tree] = ["bars-place", "mask-place", "tree-place"].map((name) => make("div", { class: name }));
  const now = () => glass.chosen.target ?? 0;
  const draw = () => {
    showGrowing(glass, growing, now());
    bars.replaceChildren(...stepBars(glass, now()));
    mask.replaceChildren(maskUntil(glass, now()));
    if (record.beam) showTree(glass, tree, now());
  };
  const section = (title, ...parts) => make("section", {}, make("h3", {}, say(title)), ...parts);
  const quiet = (text) => make("p", { class: "quiet" }, text);
  const treeText = record.beam && say("treeText", { size: record.beam.beam_size, penalty: record.beam.length_penalty });
  new ResizeObserver(() => record.beam && showTree(glass, tree, now())).observe(tree);
  draw();
  return make(
    "div",
    { class: "view", "data-rows": "target", chosen: draw },
    player(glass, now),
    growing,
    make("p", {}, make("button", { type: "button", click: () => glass.open("machine") }, say("stepInMachine"))),
    make(
      "div",
      { class: "two" },
      section("topTitle", quiet(say("topText")), bars),
      section("maskHeading", quiet(say(isEdited(glass, "look_ahead_off") ? "maskOffText" : "maskText")), mask),
    ),
    section("treeTitle", record.beam ? [quiet(treeText), treeLegend(say), tree] : quiet(say(record.target.given ? "givenNoBeam" : "noBeam"))),
  );
}

/** The buttons, the slider, and where the reader is. now() -> the step that is shown */
function player(glass, now) {
  const { record, say } = glass;
  const last = record.steps.length - 1;
  const pieces = pieceTexts(record.target.tokens);
  let timer = null;
  const button = (name, act) => make("button", { type: "button", "aria-label": say(name), title: say(name), click: act }, sign(name));
  const go = (step) => glass.choose("target", Math.max(0, Math.min(last, step)));
  const label = (name) => {
    play.replaceChildren(sign(name));
    play.setAttribute("aria-label", say(name));
    play.title = say(name);
  };
  const halt = () => {
    clearInterval(timer);
    timer = null;
    label("play");
  };
  const start = () => {
    if (now() === last) go(0);
    label("pause");
    timer = setInterval(() => {
      if (!play.isConnected || now() >= last) halt();
      else go(now() + 1);
    }, PAUSE);
  };
  const haltAt = (step) => {
    halt();
    go(step);
  };
  const play = button("play", () => (timer ? halt() : start()));
  play.classList.add("primary");
  const slider = make("input", { type: "range", min: 0, max: last, "aria-label": say("stepSlider"), input: () => haltAt(Number(slider.value)) });
  const where = make("output", { class: "quiet", "aria-live": "polite" });
  const show = () => {
    const values = { step: now() + 1, count: last + 1, token: brief(pieces[now()], 24) };
    slider.value = now();
    slider.setAttribute("aria-valuetext", say("stepOfSteps", values));
    where.textContent = say("stepOfSteps", values);
  };
  show();
  return make(
    "div",
    { class: "player", "data-rows": "target", chosen: show },
    button("toStart", () => haltAt(0)),
    button("stepBack", () => haltAt(now() - 1)),
    play,
    button("stepOn", () => haltAt(now() + 1)),
    button("toEnd", () => haltAt(last)),
    slider,
    where,
  );
}

/** The target until this step; what comes later keeps its room. */
function showGrowing({ record }, growing, step) {
  growing.replaceChildren(
    ...[visible(record.start.piece), ...pieceTexts(record.target.tokens)].map((piece, place) => {
      const look = place <= step ? "done" : place === step + 1 ? "next" : "later";
      return make("bdi", { class: place === 0 ? `${look} control` : look }, brief(piece, 24));
    }),
  );
}

/** The likeliest tokens, and why the one was taken. */
function stepBars({ record, say }, step) {
  const { top, rank, log_probability: logarithm } = record.steps[step];
  const { id } = record.target.tokens[step];
  const token = brief(pieceTexts(record.target.tokens)[step], 24);
  const how = record.target.given ? "stands" : rank === 0 ? "tookFirst" : record.beam ? "tookOther" : "tookUnlikely";
  return [
    probabilityBars(top, id, say),
    make("p", { class: "quiet" }, say(how, { token, share: percent(probability(logarithm)), rank: rank + 1 })),
  ];
}

/** What the decoder may see: the rows until now as they are, those to come still empty. */
function maskUntil(glass, step) {
  const { get, say } = glass;
  const { rowNames: room, side } = rowsOf(glass, "decoder");
  const size = room.length;
  const array = get("decoder.layers.0.self_attention.mask");
  const off = isEdited(glass, "look_ahead_off");
  const names = room.map((name, place) => (off || place <= step ? name : ""));
  const values = array ? Float32Array.from(matrixOf(array).values) : new Float32Array(size * size).fill(1);
  values.fill(0, (step + 1) * size);
  return matrixPicture(
    glass,
    { rows: size, columns: size, values },
    {
      label: say("maskTitle"),
      rowNames: names,
      columnNames: names,
      side,
      room,
      plain: true,
      square: true,
      scale: "share",
      limit: 1.6,
      cell: 22,
      told: (row, column) => `${row} → ${column}`,
    },
  );
}

function showTree(glass, place, step) {
  if (!place.clientWidth) return;
  const { record, say } = glass;
  const { beam } = record;
  const columns = Math.max(2, Math.floor((place.clientWidth + 40) / COLUMN));
  const now = Math.min(step, beam.steps.length - 1);
  const first = Math.max(0, now - columns + 1);
  const last = step < record.steps.length - 1 ? now : beam.steps.length - 1; // the search may go on after the translation's end
  const finished = (beam.finished ?? []).filter((one) => one.step <= last);
  place.replaceChildren(
    ...(last > now ? [make("p", { class: "quiet" }, say("searchWentOn", { step: last + 1 }))] : []),
    make("div", { class: "scroll" }, beamTree(glass, first, last)),
    beamList(glass, first, last),
    make("h4", {}, say("finishedTitle")),
    finished.length ? finishedList(say, finished, beam.result) : make("p", { class: "quiet" }, say("noneFinished")),
  );
}

/** finished: the ended hypotheses, best first; result: the one that became the translation, or null. */
function finishedList(say, finished, result) {
  const items = finished.map(({ step, number, text, score, ranking }) =>
    make(
      "li",
      { class: result !== null && result[0] === step && result[1] === number ? "won" : null },
      make("bdi", {}, visible(text)),
      make("span", { class: "number" }, say("ranking", { score: decimal(score), ranking: decimal(ranking) })),
    ),
  );
  return make("ol", { class: "alternatives" }, items);
}
