// A view of the training: one sentence at moments from step 0 to the last, under a slider.

import { nameOfWeights } from "./attention_of_head.js";
import { headColour } from "./colours.js";
import { columnsFor, make } from "./elements.js";
import { amount, measureName, sentenceAbout, shortLabel } from "./head_labels.js";
import { matrixPicture, thumbnail } from "./matrix.js";
import { decimal, matrixOf, openNumbers, percent, probability, whole } from "./numbers.js";
import { playerOf } from "./player.js";
import { attentionLabels, brief, visible } from "./tokens.js";
import { headsOf, mostMoved, relabelled } from "./training_changes.js";
import { lossPicture } from "./training_losses.js";

const PAUSE = 1300;
const LISTED = 5;
const LONGEST = 120;

/** Whether the record has moments to move between. */
export function hasTraining(record) {
  return (record.training?.moments.length ?? 0) > 1;
}

export function trainingView(glass) {
  const { say } = glass;
  const { moments, ...pair } = glass.record.training;
  const times = moments.map((moment) => {
    const record = { ...pair, ...moment };
    return { record, get: openNumbers(record), say };
  });
  const state = glass.kept("training", { at: 0, chosen: null }, true);
  state.at = Math.min(state.at, times.length - 1);
  state.chosen ??= mostAligned(times.at(-1).record);
  const { element: losses, show: showLosses } = lossPicture(glass, moments);
  const figures = make("dl", {});
  const changes = make("div", { "aria-live": "polite" });
  const large = make("section", { class: "large" });
  const heads = headsOf(times[0].record);
  const buttons = heads.map((one) => headButton(glass, one, () => choose(one)));
  const showLarge = () => large.replaceChildren(...largeHead(glass, times[state.at], state.chosen));
  const choose = (head) => {
    state.chosen = head;
    press();
    showLarge();
    large.scrollIntoView({ block: "nearest" });
  };
  const press = () => heads.forEach((one, at) => buttons[at].setAttribute("aria-pressed", `${sameHead(one, state.chosen)}`));
  const show = () => {
    const [before, now] = [times[state.at - 1], times[state.at]];
    showLosses(state.at);
    figures.replaceChildren(...figuresOf(glass, now));
    const changed = before ? relabelled(before.record, now.record) : [];
    changes.replaceChildren(...changesOf(glass, before, now, changed));
    headsOf(now.record).forEach((one, at) => showHead(now, one, buttons[at], changed.some((other) => sameHead(one, other))));
    showLarge();
  };
  press();
  show();
  const groups = Object.keys(times[0].record.attention).map((kind) => {
    const own = buttons.filter((_, at) => heads[at].kind === kind);
    const [rows, columns] = attentionLabels(times[0].record, kind);
    const look = { class: "grid", "--shape": `${columns.length} / ${rows.length}`, "--heads": columnsFor(own.length) };
    const name = say(`kind_${kind}`);
    return make("section", {}, make("h4", {}, name), make("div", { role: "group", "aria-label": name, ...look }, own));
  });
  return make(
    "div",
    { class: "view training" },
    player(glass, state, times, changes, show),
    make(
      "div",
      { class: "scene-of-training" },
      make("div", { class: "moment" }, figures, losses, make("section", { class: "changes" }, make("h3", {}, say("trainingChanges")), changes)),
      make("div", {}, groups, large),
    ),
    ["trainingHint", "trainingLossText"].map((name) => make("p", { class: "quiet" }, say(name))),
  );
}

function sameHead(one, other) {
  return one.kind === other.kind && one.layer === other.layer && one.head === other.head;
}

/** Of the last kind of attention, the head with the largest share of one aligned token, or of the token before. */
function mostAligned(record) {
  const kind = Object.keys(record.attention).at(-1);
  const share = ({ measures }) => measures.aligned ?? measures.previous;
  const { layer, head } = headsOf(record).filter((one) => one.kind === kind).reduce((best, one) => (share(one) > share(best) ? one : best));
  return { kind, layer, head };
}

/** The slider and its buttons; no play button for readers who want no motion. show() is called after each change, and
 * `changes` isn't read aloud while it plays. */
function player({ say }, state, times, changes, show) {
  const last = times.length - 1;
  const go = (at) => {
    state.at = Math.max(0, Math.min(last, at));
    tell();
    show();
  };
  const told = (playing) => changes.setAttribute("aria-live", playing ? "off" : "polite");
  const { play, slider, button, haltAt } = playerOf(say, { last, now: () => state.at, go, pause: () => PAUSE, slide: "trainingSlider", told });
  const where = make("output", { "aria-live": "off" });
  const tell = () => {
    const text = say("trainingMoment", { step: whole(times[state.at].record.step), number: state.at + 1, count: last + 1 });
    slider.value = state.at;
    slider.setAttribute("aria-valuetext", text);
    where.textContent = text;
  };
  tell();
  const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  return make("div", { class: "player" }, button("stepBack", () => haltAt(state.at - 1)), still ? null : play, button("stepOn", () => haltAt(state.at + 1)), slider, where);
}

/** The translation and the numbers of a moment. */
function figuresOf({ say }, { record }) {
  const { source, target, translation, score, training_loss, validation_loss } = record;
  const row = (name, ...value) => [make("dt", {}, say(name)), make("dd", {}, ...value)];
  const same = translation === target.text;
  return [
    row("trainingSource", make("bdi", {}, visible(source.text))),
    row("trainingTranslation", make("bdi", {}, make("b", {}, brief(visible(translation), LONGEST))), " ", make("span", { class: "quiet" }, say(same ? "trainingSame" : "trainingDiffers"))),
    row("trainingReference", make("bdi", {}, visible(target.text)), " ", make("span", { class: "quiet" }, say("trainingProbability", { share: percent(probability(score)) }))),
    row("trainingLoss", decimal(training_loss, 3)),
    row("validationLoss", decimal(validation_loss, 3)),
  ].flat();
}

/** Sentences on the heads that have a new label, or on the one that moved most. */
function changesOf({ say }, before, now, changed) {
  const heads = headsOf(now.record);
  if (!before) {
    const spread = heads.filter(({ label }) => label.name === "spread").length;
    return [make("p", {}, say(now.record.step === 0 ? "trainingStart" : "trainingFirst", { spread, count: heads.length }))];
  }
  const steps = { before: whole(before.record.step), now: whole(now.record.step) };
  const nameOf = ({ kind, layer, head }) => say("trainingHead", { kind: say(`kind_${kind}`), layer: layer + 1, head: head + 1 });
  if (!changed.length) {
    const most = mostMoved(before, now);
    return [make("p", {}, say("trainingUnchanged", { ...steps, head: nameOf(most), share: percent(most.moved) }))];
  }
  const items = changed.slice(0, LISTED).map((one) => {
    const [from, to] = [[before, one.from], [now, one.to]].map(([time, { kind, measures }]) => shortLabel(time, kind, measures));
    const values = { head: nameOf(one), from, to, measure: measureName(say, one.kind, one.measure), was: amount(one.measure, one.was, say), is: amount(one.measure, one.is, say) };
    return make("li", {}, say("trainingChange", values));
  });
  if (changed.length > LISTED) items.push(make("li", {}, say("trainingMore", { count: changed.length - LISTED })));
  return [make("p", {}, say("trainingChanged", { ...steps, changed: changed.length, count: heads.length })), make("ul", {}, items)];
}

function headButton({ say }, { kind, layer, head }, choose) {
  const number = make("b", {}, make("span", { class: "swatch", "aria-hidden": "true" }), `${layer + 1}·${head + 1}`);
  return make(
    "button",
    { type: "button", class: "head", "--head": headColour(head), click: choose },
    make("span", { class: "unseen" }, `${say(`kind_${kind}`)} `),
    make("span", { class: "small-picture" }),
    make("span", { class: "caption" }, number, make("span", { class: "label" })),
  );
}

/** Shows a head at a moment; the strongest colour stands for all of a row's attention, at every moment. */
function showHead(now, { kind, layer, head, measures }, button, isNew) {
  const matrix = matrixOf(now.get(nameOfWeights(now.record, kind, layer)), head);
  button.querySelector(".small-picture").replaceChildren(thumbnail(matrix, { scale: head }));
  const label = shortLabel(now, kind, measures);
  button.querySelector(".label").textContent = isNew ? now.say("trainingNew", { label }) : label;
  button.classList.toggle("relabelled", isNew);
}

function largeHead(glass, now, { kind, layer, head }) {
  const { say } = glass;
  const [rowNames, columnNames] = attentionLabels(now.record, kind);
  const title = say("trainingHead", { kind: say(`kind_${kind}`), layer: layer + 1, head: head + 1 });
  const matrix = matrixOf(now.get(nameOfWeights(now.record, kind, layer)), head);
  const picture = matrixPicture(glass, matrix, { label: say("matrixLabel", { title }), rowNames, columnNames, scale: head, square: true, cell: 30, told: (row, column) => `${row} → ${column}` });
  const about = sentenceAbout(now, kind, now.record.attention[kind].measures[layer][head]).slice(0, 3); // the rule speaks of the heads view
  return [make("h3", {}, title), make("p", {}, about), picture, make("p", { class: "quiet" }, say(`rows_${kind}`))];
}
