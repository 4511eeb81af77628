// Decoding, token by token: what the step looks at, what it has written, what comes next, and the beam.

import { probabilityBars } from "./bars.js";
import { make, select } from "./elements.js";
import { nextToken } from "./next_token.js";
import { decimal, percent, probability } from "./numbers.js";
import { playerOf } from "./player.js";
import { isEdited, note } from "./stages.js";
import { stepPicture } from "./step_picture.js";
import { brief, pieceTexts, visible } from "./tokens.js";
import { beamList, beamTree, treeLegend, winner } from "./tree.js";

const PAUSE = 1200;
const SPEEDS = [0.5, 1, 2, 4];
const COLUMN = 176;
const FIVE = 5;

export function stepsView(glass) {
  const { record, say } = glass;
  const [bars, tree] = ["bars-place", "tree-place"].map((name) => make("div", { class: name }));
  const now = () => glass.chosen.target ?? 0;
  const picture = stepPicture(glass, now);
  const sampling = nextToken(glass, now);
  const draw = () => {
    picture.draw();
    sampling.draw();
    bars.replaceChildren(...stepBars(glass, now()));
    if (record.beam) showTree(glass, tree, now());
  };
  const section = (title, ...parts) => make("section", {}, make("h3", {}, say(title)), ...parts);
  const treeText = record.beam && say("treeText", { size: record.beam.beam_size, penalty: record.beam.length_penalty });
  new ResizeObserver(() => record.beam && showTree(glass, tree, now())).observe(tree);
  draw();
  return make(
    "div",
    { class: "view", "data-rows": "target", chosen: draw },
    make(
      "div",
      { class: "step-scene" },
      picture.element,
      make("div", { class: "step-bars" }, section("topTitle", bars), make("button", { type: "button", click: () => glass.open("machine") }, say("stepInMachine"))),
      player(glass, now),
    ),
    note(say(isEdited(glass, "look_ahead_off") ? "maskOffText" : "maskText")),
    sampling.element,
    section("treeTitle", record.beam ? [note(treeText), treeLegend(say), tree] : note(say(record.target.given ? "givenNoBeam" : "noBeam"))),
  );
}

/** The buttons, the slider, and where the reader is. now() -> the step that is shown */
function player(glass, now) {
  const { record, say } = glass;
  const last = record.steps.length - 1;
  const pieces = pieceTexts(record.target.tokens);
  const kept = glass.kept("steps", { speed: 1 }, true);
  const go = (step) => glass.choose("target", Math.max(0, Math.min(last, step)));
  const { play, slider, button, haltAt, again } = playerOf(say, { last, now, go, pause: () => PAUSE / kept.speed });
  const speeds = SPEEDS.map((speed) => [`${speed}`, `${speed}×`]);
  const speed = select(say("speed"), speeds, `${kept.speed}`, (value) => {
    kept.speed = Number(value);
    again();
  });
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
    speed,
    where,
  );
}

/** The likeliest tokens, and why the one was taken. */
function stepBars({ record, say }, step) {
  const { top, rank, log_probability: logarithm } = record.steps[step];
  const { id } = record.target.tokens[step];
  const token = brief(pieceTexts(record.target.tokens)[step], 24);
  const shown = top.filter((one, at) => at < FIVE || one.id === id);
  const how = record.target.given ? "stands" : rank === 0 ? "tookFirst" : record.beam && winner(record.beam) ? "tookOther" : "tookUnlikely";
  return [
    probabilityBars(shown, id, say),
    note(say(how, { token, share: percent(probability(logarithm)), rank: rank + 1 })),
  ];
}

function showTree(glass, place, step) {
  if (!place.clientWidth) return;
  const { record, say } = glass;
  const { beam } = record;
  const columns = Math.max(2, Math.floor((place.clientWidth + 40) / COLUMN));
  const now = Math.min(step, beam.steps.length - 1);
  const first = Math.max(0, now - columns + 1);
  const last = step < record.steps.length - 1 ? now : beam.steps.length - 1; // the search may go on after the translation's end
  const hypothesis = make("p", { class: "hypothesis quiet" }, say("hypothesisHint"));
  const point = (text, { score }) => hypothesis.replaceChildren(make("bdi", {}, text), make("span", { class: "number" }, ` ${decimal(score)}`));
  const finished = (beam.finished ?? []).filter((one) => one.step <= last);
  place.replaceChildren(
    ...(last > now ? [note(say("searchWentOn", { step: last + 1 }))] : []),
    hypothesis,
    make("div", { class: "scroll" }, beamTree(glass, first, last, point)),
    beamList(glass, first, last),
    make("h4", {}, say("finishedTitle")),
    finished.length ? finishedList(say, finished, winner(beam)) : note(say("noneFinished")),
  );
}

/** finished: the ended hypotheses, best first; won: the one of them that became the translation, if one did. */
function finishedList(say, finished, won) {
  const items = finished.map((one) =>
    make(
      "li",
      { class: one === won ? "won" : null },
      make("bdi", {}, visible(one.text)),
      make("span", { class: "number" }, say("ranking", { score: decimal(one.score), ranking: decimal(one.ranking) })),
    ),
  );
  return make("ol", { class: "alternatives" }, items);
}
