// What becomes of the translation when a part of the model, or the sentence, is changed. All that is tried
// is added to the edits that the record has already, so that before and after differ by it alone.

import { sourceAsItWas } from "./asking.js";
import { make } from "./elements.js";
import { orderCard } from "./order.js";
import { isEdited } from "./stages.js";
import { brief, visible } from "./tokens.js";
import { comparison, editNames, keptResult, keyOf, knownCase, results, translationOf, unchanged, WORDS } from "./trying.js";
import { headsOff } from "./what_if_heads.js";

const SWITCHES = ["positions_off", "look_ahead_off", "scaling_off"];

export function whatIfView(glass) {
  const { record, say } = glass;
  const canTry = glass.inspect || record.cases.length;
  return make(
    "div",
    { class: "view" },
    make("p", { class: "quiet" }, say("whatIfNumbers"), glass.inspect ? "" : ` ${say("standAloneCases")}`),
    record.edits.length ? editedNotice(glass) : null,
    canTry ? null : make("p", {}, say("noCases")),
    canTry ? switches(glass) : null,
    canTry ? headsOff(glass) : null,
    canTry ? wordsSwapped(glass) : null,
    orderCard(glass),
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

function editedNotice(glass) {
  const { record, say } = glass;
  return make(
    "section",
    { class: "card" },
    make("h3", {}, say("editsTitle")),
    make("p", {}, editNames(glass, record.edits).join(" · ")),
    record.before ? comparison(glass, record.before, translationOf(record)) : null,
    record.before && !record.target.given ? unchanged(glass, record.edits, record.before, translationOf(record).words, record.target) : null,
    make("p", { class: "quiet" }, say("editsText")),
  );
}

/** What is switched off, and what came of it: {off: kinds, found, latest}, as of `keptResult`; off: undefined until the reader
 * has looked. */
export function chosenSwitches(glass) {
  return keptResult(glass, "switches");
}

/** Parts to be switched off, several at once. What is shown is always of the switches as they stand. */
function switches(glass) {
  const { record, say } = glass;
  const editsOf = (kinds) => [
    ...record.edits.filter(({ kind }) => !SWITCHES.includes(kind) || kinds.includes(kind)), // as they stand in the record
    ...SWITCHES.filter((kind) => kinds.includes(kind) && !isEdited(glass, kind)).map((kind) => ({ kind })),
  ];
  const tried = results(glass, "switches");
  const { off, found, latest } = tried.kept;
  tried.kept.off = (off ?? record.edits.map(({ kind }) => kind)).filter((kind) => SWITCHES.includes(kind));
  const attempt = () => {
    tried.kept.off = boxes.filter((box) => box.checked).map((box) => box.value);
    const edits = editsOf(tried.kept.off);
    if (keyOf(edits) === keyOf(record.edits)) tried.clear();
    else tried.attempt(edits);
  };
  const boxes = SWITCHES.map((kind) => make("input", { type: "checkbox", value: kind, change: attempt }));
  const first = editsOf(SWITCHES.slice(0, 1));
  if (!off && knownCase(record, first)) {
    tried.kept.off = first.map(({ kind }) => kind);
    tried.show(knownCase(record, first));
  }
  for (const box of boxes) box.checked = tried.kept.off.includes(box.value);
  if (off && !found && !latest) attempt(); // by an address
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
    tried.elements,
  );
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
