// The fifth view: what becomes of the translation when a part of the model, or the sentence, is changed. All that is tried
// is added to the edits that the record has already, so that before and after differ by it alone.

import { markedChanges } from "./changes.js";
import { headColour } from "./colours.js";
import { columnsFor, make } from "./elements.js";
import { chosenHead } from "./heads.js";
import { decimal } from "./numbers.js";
import { orderPreset } from "./order.js";
import { brief, visible } from "./tokens.js";

const SWITCHES = ["positions_off", "look_ahead_off", "scaling_off"];
const WORDS = /\S+/gu;
const LEAST_FALL = 0.5; // of a logarithm: where no head matters more, none has the strongest colour
const casesByEdits = new WeakMap();

export function whatIfView(glass) {
  const { record, say } = glass;
  const canTry = glass.inspect || record.cases.length;
  return make(
    "div",
    { class: "view" },
    record.edits.length ? editedNotice(glass) : null,
    glass.inspect ? switches(glass) : switchCards(glass),
    canTry ? headsOff(glass) : null,
    canTry ? wordsSwapped(glass) : null,
    orderPreset(glass),
    canTry ? null : make("p", {}, say("noCases")),
    make("p", { class: "quiet" }, say("whatIfNumbers"), glass.inspect ? "" : ` ${say("standAloneCases")}`),
  );
}

/** In the head of the box: that the record is not of the model, or the sentence, as it was; and the way back. */
export function editedLine(glass) {
  const { record, say } = glass;
  const model = record.edits.some(({ kind }) => kind !== "swap_words");
  const status = make("span", { class: "quiet", role: "status" });
  const back = () => glass.ask(sourceAsItWas(record), {}, status);
  return make(
    "p",
    { class: "edited" },
    make("span", {}, say(model ? "editedTitle" : "swappedTitle")),
    glass.inspect ? make("button", { type: "button", id: "glass-as-it-is", click: back }, say("asItIs")) : null,
    status,
  );
}

function sourceAsItWas({ source }) {
  return source.original ?? source.text;
}

/** What some edits do: from the record's cases, else from the live model. -> {edits, source, after, score_of_before} or null */
async function outcome(glass, edits, status) {
  const { record } = glass;
  const known = knownCase(record, edits);
  if (known || !glass.inspect) {
    glass.begin(status);
    status.textContent = known ? "" : glass.say("notTried");
    return known;
  }
  const options = { cases: [edits], arrays: "none" };
  if (record.edits.length) options.edits = record.edits; // so that the score of before is of the translation shown
  if (record.target.given) options.translation = record.target.text;
  const answer = await glass.request(sourceAsItWas(record), options, status);
  return answer?.cases[0] ?? null;
}

function knownCase(record, edits) {
  if (!casesByEdits.has(record)) casesByEdits.set(record, new Map(record.cases.map((one) => [keyOf(one.edits), one])));
  return casesByEdits.get(record).get(keyOf(edits)) ?? null;
}

/** Edits as a text that is the same for the same edits. */
function keyOf(edits) {
  return JSON.stringify(edits.map((edit) => Object.entries(edit).toSorted()));
}

/** What edits are, in a few words each; words are named as they stood when they were swapped. */
function editNames({ record, say }, edits) {
  const words = sourceAsItWas(record).match(WORDS) ?? [];
  const wordAt = (number) => brief(visible(words[number] ?? `${number + 1}`), 30);
  return edits.map((edit) => {
    if (edit.kind === "head_off") return say("edit_head_off", { kind: say(`kind_${edit.attention}`), layer: edit.layer + 1, head: edit.head + 1 });
    if (edit.kind !== "swap_words") return say(`edit_${edit.kind}`);
    const name = say("edit_swap_words", { first: wordAt(edit.first), second: wordAt(edit.second) });
    [words[edit.first], words[edit.second]] = [words[edit.second], words[edit.first]];
    return name;
  });
}

function editedNotice(glass) {
  const { record, say } = glass;
  return make(
    "section",
    { class: "card" },
    make("h3", {}, say("editsTitle")),
    make("p", {}, editNames(glass, record.edits).join(" · ")),
    record.before ? comparison(glass, record.before, record.target) : null,
    record.before && !record.target.given ? unchanged(glass, record.before, record.target) : null,
    make("p", { class: "quiet" }, say("editsText")),
  );
}

/** Before and after: {text, score} each; of the first translation also what the edited model holds of it. */
function comparison({ say }, before, after, scoreOfBefore = null) {
  const line = (name, text, score) => [
    make("dt", {}, say(name)),
    make("dd", {}, text, make("span", { class: "number" }, decimal(score))),
  ];
  return make(
    "dl",
    { class: "comparison" },
    line("before", make("bdi", {}, visible(before.text)), before.score),
    line("after", markedChanges(before.text, after.text), after.score),
    scoreOfBefore === null || before.text === after.text
      ? null
      : line("oldNow", make("span", { class: "quiet" }, say("oldNowText")), scoreOfBefore),
  );
}

/** Says so where two translations are one. */
function unchanged({ say }, before, after) {
  return before.text === after.text ? make("p", { class: "seen" }, say("unchanged")) : null;
}

/** What a case did beside the record's own edits: its title, and the translation before and after. */
function result(glass, { edits, source, after, score_of_before: scoreOfBefore }) {
  const { record, say } = glass;
  const swapped = source !== record.source.text;
  const own = new Set(record.edits.map((edit) => keyOf([edit])));
  const names = editNames(glass, edits);
  const added = edits.filter((edit) => !own.has(keyOf([edit])));
  const kinds = [...new Set(added.map(({ kind }) => kind))];
  const [head] = added.filter(({ kind }) => kind === "head_off");
  return [
    make("h4", {}, names.join(" · ")),
    make("p", { class: "quiet" }, kinds.map((kind) => say(`why_${kind}`)).join(" ")),
    swapped ? make("p", { class: "quoted" }, make("bdi", {}, visible(source))) : null,
    comparison(glass, record.target, after, swapped ? null : scoreOfBefore),
    unchanged(glass, record.target, after),
    head ? make("button", { type: "button", click: () => openHead(glass, head) }, say("seeHead")) : null,
  ].filter((part) => part);
}

function openHead(glass, { attention, layer, head }) {
  Object.assign(chosenHead(glass), { kind: attention, order: "layer", chosen: [layer, head] });
  glass.open("heads");
}

/** A place for results, and for what there is to say meanwhile; the last result stays when the box is drawn again. */
function results(glass, name, more = () => []) {
  const kept = glass.kept(`whatIf ${name}`, { found: null });
  const place = make("div", { class: "result", "aria-live": "polite" });
  const status = make("p", { class: "quiet status", role: "status" });
  const show = (found) => {
    kept.found = found;
    place.replaceChildren(...result(glass, found), ...more(found));
  };
  const attempt = async (edits) => {
    const found = await outcome(glass, edits, status);
    if (found) show(found);
    return found;
  };
  if (kept.found) show(kept.found);
  return { elements: [status, place], status, attempt, show, kept };
}

/** Where there is no live model: what each switch does, tried beforehand. */
function switchCards(glass) {
  const { record } = glass;
  const found = SWITCHES.map((kind) => knownCase(record, [...record.edits, { kind }])).filter((one) => one);
  if (!found.length) return null;
  return make(
    "section",
    {},
    make("h3", {}, glass.say("switchesTitle")),
    make("div", { class: "cards" }, found.map((one) => make("article", { class: "card" }, result(glass, one)))),
  );
}

/** Switches for the live model, several at once; what the record's model has off already is off. */
function switches(glass) {
  const { record, say } = glass;
  const others = record.edits.filter(({ kind }) => !SWITCHES.includes(kind));
  const inside = (edits) => glass.ask(sourceAsItWas(record), { edits }, tried.status);
  const more = ({ edits }) => [make("button", { type: "button", click: () => inside(edits) }, say("lookInsideEdited"))];
  const tried = results(glass, "switches", more);
  tried.kept.off ??= record.edits.map(({ kind }) => kind);
  const boxes = SWITCHES.map((kind) => {
    const change = () => (tried.kept.off = boxes.filter((one) => one.checked).map((one) => one.value));
    const box = make("input", { type: "checkbox", value: kind, change });
    box.checked = tried.kept.off.includes(kind);
    return box;
  });
  const attempt = () => {
    const edits = [...others, ...boxes.filter((box) => box.checked).map((box) => ({ kind: box.value }))];
    if (keyOf(edits) === keyOf(record.edits)) tried.status.textContent = say("chooseEdit");
    else tried.attempt(edits);
  };
  const label = (box) =>
    make(
      "label",
      { class: "switch" },
      box,
      make("span", {}, make("b", {}, say(`edit_${box.value}`)), make("span", { class: "quiet" }, say(`why_${box.value}`))),
    );
  return make(
    "section",
    { class: "card" },
    make("h3", {}, say("switchesTitle")),
    make("div", { class: "switches" }, boxes.map(label)),
    make("button", { type: "button", class: "primary", click: attempt }, say("tryIt")),
    tried.elements,
  );
}

/** All heads, each to be switched off; where all were tried, how much each of them matters. */
function headsOff(glass) {
  const { record, say } = glass;
  const place = results(glass, "heads");
  const known = Object.entries(record.attention).flatMap(([attention, about]) =>
    headsOf(attention, about).map((edit) => knownCase(record, [...record.edits, edit])),
  );
  const tried = known.filter((one) => one && one.score_of_before !== null);
  if (tried.length && !place.kept.found) {
    place.show(tried.reduce((best, one) => (one.score_of_before < best.score_of_before ? one : best)));
  }
  const falls = (place.kept.falls ??= new Map());
  const note = ({ edits, score_of_before: score }) => score === null || falls.set(keyOf(edits.slice(-1)), record.target.score - score);
  tried.forEach(note);
  const attempt = async (edit) => {
    const found = await place.attempt([...record.edits, edit]);
    if (found) note(found);
    grids.forEach((one) => one.refresh());
  };
  const grids = Object.entries(record.attention).map(([kind, about]) => headGrid(glass, kind, about, falls, attempt));
  return make(
    "section",
    { class: "card" },
    make("h3", {}, say("headsOffTitle")),
    make("p", { class: "quiet" }, say(tried.length ? "headsOffTried" : "headsOffText")),
    make("div", { class: "cards" }, grids.map((one) => one.element)),
    place.elements,
  );
}

/** For each head of a kind of attention the edit that switches it off. */
function headsOf(attention, { layers, heads }) {
  return Array.from({ length: layers * heads }, (_, at) => ({ kind: "head_off", attention, layer: Math.floor(at / heads), head: at % heads }));
}

/** falls: by edit, how much likelier the translation is with the head, of the heads that were tried. -> {element, refresh} */
function headGrid(glass, kind, about, falls, attempt) {
  const { record, say } = glass;
  const off = new Set(record.edits.map((edit) => keyOf([edit])));
  const heads = headsOf(kind, about).map((edit) => {
    const number = make("span", { class: "change" });
    const button = make(
      "button",
      { type: "button", class: "head effect", disabled: off.has(keyOf([edit])), click: () => attempt(edit) },
      make("span", {}, `${edit.layer + 1}·${edit.head + 1}`),
      number,
    );
    button.style.setProperty("--head", headColour(edit.head));
    return { edit, button, number };
  });
  const refresh = () => {
    const most = Math.max(...falls.values(), LEAST_FALL);
    for (const { edit, button, number } of heads) {
      const fall = falls.get(keyOf([edit]));
      const [name] = editNames(glass, [edit]);
      button.setAttribute("aria-label", fall === undefined ? name : `${name}: ${decimal(-fall)}`);
      button.style.setProperty("--share", Math.max(0, (fall ?? 0) / most).toFixed(3));
      number.textContent = fall === undefined ? "" : decimal(-fall, Math.abs(fall) < 10 ? 2 : 0);
    }
  };
  refresh();
  const buttons = heads.map(({ button }) => button);
  const grid = make("div", { class: "grid effects", role: "group", "aria-label": say(`kind_${kind}`) }, buttons);
  grid.style.setProperty("--heads", columnsFor(about.heads));
  return { element: make("div", {}, make("h4", {}, say(`kind_${kind}`)), grid), refresh };
}

/** The words of the source as buttons: two of them change places. */
function wordsSwapped(glass) {
  const { record, say } = glass;
  const words = record.source.text.match(WORDS) ?? [];
  if (words.length < 2) return null;
  const place = results(glass, "words");
  let first = null;
  const choose = (number) => {
    const other = first;
    first = other === null ? number : null;
    buttons.forEach((button, at) => button.setAttribute("aria-pressed", `${at === first}`));
    if (other === null || other === number) return;
    place.attempt([...record.edits, { kind: "swap_words", first: Math.min(other, number), second: Math.max(other, number) }]);
  };
  const buttons = words.map((word, number) =>
    make(
      "button",
      { type: "button", class: "word", "aria-pressed": "false", click: () => choose(number) },
      make("bdi", {}, brief(visible(word), 40)),
    ),
  );
  return make(
    "section",
    { class: "card" },
    make("h3", {}, say("swapTitle")),
    make("p", { class: "quiet" }, say("swapText")),
    make("p", { class: "text words", dir: "auto" }, buttons),
    place.elements,
  );
}
