// The fifth view: what becomes of the translation when a part of the model, or the sentence, is changed.

import { markedChanges } from "./changes.js";
import { make } from "./elements.js";
import { orderPreset } from "./order.js";
import { brief, visible } from "./tokens.js";

const SWITCHES = ["positions_off", "look_ahead_off", "scaling_off"];
const WORDS = /\S+/gu;

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

/** What some edits do: from the record's cases, else from the live model. -> {source, after, score_of_before} or null */
async function outcome(glass, edits, status) {
  const known = knownCase(glass.record, edits);
  if (known || !glass.inspect) {
    status.textContent = known ? "" : glass.say("notTried");
    return known;
  }
  const options = { cases: [edits], arrays: "none" };
  const answer = await glass.request(glass.record.source.text, options, status);
  return answer?.cases[0] ?? null;
}

function knownCase(record, edits) {
  const wanted = JSON.stringify(edits.map(sorted));
  return record.cases.find((one) => JSON.stringify(one.edits.map(sorted)) === wanted) ?? null;
}

const sorted = (edit) => Object.entries(edit).toSorted();

/** What an edit is, in a few words. */
function editName({ record, say }, edit) {
  const words = record.source.text.match(WORDS) ?? [];
  const wordAt = (number) => brief(visible(words[number] ?? `${number + 1}`), 30);
  if (edit.kind === "head_off") {
    return say("edit_head_off", { kind: say(`kind_${edit.attention}`), layer: edit.layer + 1, head: edit.head + 1 });
  }
  if (edit.kind === "swap_words") return say("edit_swap_words", { first: wordAt(edit.first), second: wordAt(edit.second) });
  return say(`edit_${edit.kind}`);
}

export function scoreText(score) {
  return score === null || score === undefined ? "–" : score.toFixed(2).replace("-", "−");
}

function editedNotice(glass) {
  const { record, say } = glass;
  return make(
    "section",
    { class: "card" },
    make("h3", {}, say("editedTitle")),
    make("p", {}, record.edits.map((edit) => editName(glass, edit)).join(" · ")),
    record.before ? comparison(glass, record.before, record.target) : null,
  );
}

/** Before and after: {text, score} each; of the first translation also what the edited model holds of it. */
function comparison({ say }, before, after, scoreOfBefore = null) {
  const line = (name, text, score) => [
    make("dt", {}, say(name)),
    make("dd", {}, text, make("span", { class: "number" }, scoreText(score))),
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

/** What a case did: its title, and the translation before and after. */
function result(glass, { edits, source, after, score_of_before: scoreOfBefore }) {
  const { record, say } = glass;
  const swapped = source !== record.source.text;
  return [
    make("h4", {}, edits.map((edit) => editName(glass, edit)).join(" · ")),
    make("p", { class: "quiet" }, edits.map((edit) => say(`why_${edit.kind}`)).join(" ")),
    swapped ? make("p", { class: "quoted" }, make("bdi", {}, visible(source))) : null,
    comparison(glass, record.target, after, swapped ? null : scoreOfBefore),
  ].filter((part) => part);
}

function switchCards(glass) {
  const found = SWITCHES.map((kind) => knownCase(glass.record, [{ kind }])).filter((one) => one);
  if (!found.length) return null;
  return make(
    "section",
    {},
    make("h3", {}, glass.say("switchesTitle")),
    make("div", { class: "cards" }, found.map((one) => make("article", { class: "card" }, result(glass, one)))),
  );
}

/** Switches for the live model, several at once. */
function switches(glass) {
  const { record, say } = glass;
  const place = make("div", { class: "result", "aria-live": "polite" });
  const status = make("p", { class: "quiet status", role: "status" });
  const boxes = SWITCHES.map((kind) => make("input", { type: "checkbox", value: kind }));
  const attempt = async () => {
    const edits = boxes.filter((box) => box.checked).map((box) => ({ kind: box.value }));
    if (!edits.length) {
      status.textContent = say("chooseEdit");
      return;
    }
    const found = await outcome(glass, edits, status);
    if (!found) return;
    const inside = () => glass.ask(record.source.text, { edits }, status);
    place.replaceChildren(...result(glass, found), make("button", { type: "button", click: inside }, say("lookInsideEdited")));
  };
  return make(
    "section",
    { class: "card" },
    make("h3", {}, say("switchesTitle")),
    make(
      "div",
      { class: "switches" },
      boxes.map((box) =>
        make(
          "label",
          { class: "switch" },
          box,
          make("span", {}, make("b", {}, say(`edit_${box.value}`)), make("span", { class: "quiet" }, say(`why_${box.value}`))),
        ),
      ),
    ),
    make("button", { type: "button", class: "primary", click: attempt }, say("tryIt")),
    status,
    place,
  );
}

/** All heads, each to be switched off; where all were tried, how much each of them matters. */
function headsOff(glass) {
  const { record, say } = glass;
  const place = make("div", { class: "result", "aria-live": "polite" });
  const status = make("p", { class: "quiet status", role: "status" });
  const tried = record.cases.filter(({ edits }) => edits.length === 1 && edits[0].kind === "head_off");
  const falls = new Map(tried.map((one) => [JSON.stringify(sorted(one.edits[0])), record.target.score - one.score_of_before]));
  const most = Math.max(...falls.values(), 1e-6);
  if (tried.length) {
    const needed = tried.reduce((best, one) => (one.score_of_before < best.score_of_before ? one : best));
    place.append(...result(glass, needed));
  }
  const grids = Object.entries(record.attention).map(([kind, { layers, heads }]) => {
    const buttons = Array.from({ length: layers * heads }, (_, at) => {
      const edit = { kind: "head_off", attention: kind, layer: Math.floor(at / heads), head: at % heads };
      const fall = falls.get(JSON.stringify(sorted(edit)));
      const button = make(
        "button",
        {
          type: "button",
          class: "head effect",
          "aria-label": editName(glass, edit),
          click: async () => {
            const found = await outcome(glass, [edit], status);
            if (found) place.replaceChildren(...result(glass, found));
          },
        },
        `${edit.layer + 1}·${edit.head + 1}`,
        fall === undefined ? null : make("span", {}, scoreText(-fall)),
      );
      button.style.setProperty("--share", Math.max(0, (fall ?? 0) / most).toFixed(3));
      return button;
    });
    const grid = make("div", { class: "grid", role: "group", "aria-label": say(`kind_${kind}`) }, buttons);
    grid.style.setProperty("--heads", heads);
    return make("div", {}, make("h4", {}, say(`kind_${kind}`)), grid);
  });
  return make(
    "section",
    { class: "card" },
    make("h3", {}, say("headsOffTitle")),
    make("p", { class: "quiet" }, say(tried.length ? "headsOffTried" : "headsOffText")),
    make("div", { class: "cards" }, grids),
    status,
    place,
  );
}

/** The words of the source as buttons: two of them change places. */
function wordsSwapped(glass) {
  const { record, say } = glass;
  const words = record.source.text.match(WORDS) ?? [];
  if (words.length < 2) return null;
  const place = make("div", { class: "result", "aria-live": "polite" });
  const status = make("p", { class: "quiet status", role: "status" });
  let first = null;
  const buttons = words.map((word, number) =>
    make(
      "button",
      {
        type: "button",
        class: "word",
        "aria-pressed": "false",
        click: async () => {
          const again = first === number;
          buttons[first ?? number].setAttribute("aria-pressed", "false");
          if (first === null) {
            first = number;
            buttons[number].setAttribute("aria-pressed", "true");
          }
          if (first === number) {
            if (again) first = null;
            return;
          }
          const edit = { kind: "swap_words", first: Math.min(first, number), second: Math.max(first, number) };
          first = null;
          const found = await outcome(glass, [edit], status);
          if (found) place.replaceChildren(...result(glass, found));
        },
      },
      make("bdi", {}, brief(visible(word), 40)),
    ),
  );
  return make(
    "section",
    { class: "card" },
    make("h3", {}, say("swapTitle")),
    make("p", { class: "quiet" }, say("swapText")),
    make("p", { class: "text words", dir: "auto" }, buttons),
    status,
    place,
  );
}
