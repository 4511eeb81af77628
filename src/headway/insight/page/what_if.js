// The fifth view: what becomes of the translation when a part of the model, or the sentence, is changed.

import { markedChanges } from "./changes.js";
import { make, select } from "./elements.js";
import { visible } from "./tokens.js";

/** Two sentences of the same words, in which "not" stands elsewhere, for each language that has them. */
const PAIRS = {
  de: ["Das Kind schläft nicht und spielt.", "Das Kind schläft und spielt nicht."],
  en: ["The dog is not hungry and tired.", "The dog is hungry and not tired."],
  es: ["El niño no duerme y juega.", "El niño duerme y no juega."],
  fr: ["Le chien est pas fatigué mais content.", "Le chien est fatigué mais pas content."],
  ko: ["아이가 안 자고 놀아요.", "아이가 자고 안 놀아요."],
};

export function whatIfView(glass) {
  const { record, say } = glass;
  const sections = [];
  if (record.edits.length) sections.push(editedNotice(glass));
  if (glass.inspect) sections.push(experiment(glass), orderPreset(glass));
  if (record.cases.length) sections.push(cases(glass));
  else if (!glass.inspect) sections.push(make("p", {}, say("noCases")));
  if (!glass.inspect) sections.push(make("p", { class: "quiet" }, say("standAloneCases")));
  return make("div", { class: "view" }, sections);
}

/** What an edit is, in a sentence. */
function editName({ record, say }, edit) {
  const words = record.source.text.trim().split(/\s+/u);
  const wordAt = (number) => visible(words[number] ?? `${number + 1}`);
  if (edit.kind === "head_off") return say("edit_head_off", { kind: say(`kind_${edit.attention}`), layer: edit.layer + 1, head: edit.head + 1 });
  if (edit.kind === "swap_words") return say("edit_swap_words", { first: wordAt(edit.first), second: wordAt(edit.second) });
  return say(`edit_${edit.kind}`);
}

function scoreText(score) {
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

/** Before and after: {text, score} each. */
function comparison({ say }, before, after, scoreOfBefore = null) {
  return make(
    "dl",
    { class: "comparison" },
    make("dt", {}, say("before")),
    make("dd", {}, make("bdi", {}, visible(before.text)), make("span", { class: "number" }, scoreText(before.score))),
    make("dt", {}, say("after")),
    make("dd", {}, markedChanges(before.text, after.text), make("span", { class: "number" }, scoreText(after.score))),
    scoreOfBefore === null || before.text === after.text
      ? null
      : [make("dt", {}, say("oldNow")), make("dd", {}, make("span", { class: "quiet" }, say("oldNowText")), make("span", { class: "number" }, scoreText(scoreOfBefore)))],
  );
}

function cases(glass) {
  const { record, say } = glass;
  return make(
    "section",
    {},
    make("h3", {}, say("casesTitle")),
    make("p", { class: "quiet" }, say("casesText")),
    make(
      "div",
      { class: "cards" },
      record.cases.map((one) =>
        make(
          "article",
          { class: "card" },
          make("h4", {}, one.edits.map((edit) => editName(glass, edit)).join(" · ")),
          make("p", { class: "quiet" }, reason(one.edits, say)),
          one.source === record.source.text ? null : make("p", { class: "quoted" }, make("bdi", {}, visible(one.source))),
          comparison(glass, record.target, one.after, one.source === record.source.text ? one.score_of_before : null),
        ),
      ),
    ),
  );
}

function reason(edits, say) {
  return say(`why_${edits[0].kind}`);
}

/** Switches for the live model. */
function experiment(glass) {
  const { record, say } = glass;
  const result = make("div", { class: "result", "aria-live": "polite" });
  const status = make("p", { class: "quiet status", role: "status" });
  const boxes = ["positions_off", "look_ahead_off", "scaling_off"].map((kind) => {
    const box = make("input", { type: "checkbox", value: kind });
    return make("label", { class: "switch" }, box, make("span", {}, make("b", {}, say(`edit_${kind}`)), make("span", { class: "quiet" }, say(`why_${kind}`))));
  });
  const chosen = { head: "", first: "", second: "" };
  const heads = Object.entries(record.attention).flatMap(([kind, about]) =>
    Array.from({ length: about.layers * about.heads }, (_, at) => {
      const [layer, head] = [Math.floor(at / about.heads), at % about.heads];
      return [`${kind} ${layer} ${head}`, say("edit_head_off", { kind: say(`kind_${kind}`), layer: layer + 1, head: head + 1 })];
    }),
  );
  const words = record.source.text.trim().split(/\s+/u).map((word, number) => [`${number}`, `${number + 1}  ${visible(word).slice(0, 30)}`]);
  const picked = (name) => (value) => (chosen[name] = value);
  const edits = () => {
    const found = boxes.map((label) => label.querySelector("input")).filter((box) => box.checked).map((box) => ({ kind: box.value }));
    if (chosen.head) {
      const [attention, layer, head] = chosen.head.split(" ");
      found.push({ kind: "head_off", attention, layer: Number(layer), head: Number(head) });
    }
    if (chosen.first && chosen.second && chosen.first !== chosen.second) {
      found.push({ kind: "swap_words", first: Number(chosen.first), second: Number(chosen.second) });
    }
    return found;
  };
  const attempt = async () => {
    const wanted = edits();
    if (!wanted.length) {
      status.textContent = say("chooseEdit");
      return;
    }
    const answer = await glass.request(record.source.text, { edits: wanted, arrays: "none" }, status);
    if (!answer) return;
    result.replaceChildren(
      make("p", {}, make("b", {}, wanted.map((edit) => editName(glass, edit)).join(" · "))),
      comparison(glass, answer.before ?? record.target, answer.target),
      make("button", { type: "button", click: () => glass.ask(record.source.text, { edits: wanted }, status) }, say("lookInsideEdited")),
    );
  };
  const none = ["", say("none")];
  return make(
    "section",
    { class: "card" },
    make("h3", {}, say("experimentTitle")),
    make("p", { class: "quiet" }, say("experimentText")),
    make("p", { class: "quoted", dir: "auto" }, visible(record.source.text)),
    make("div", { class: "switches" }, boxes),
    make(
      "div",
      { class: "controls" },
      select(say("headToSwitchOff"), [none, ...heads], "", picked("head")),
      select(say("swapFirst"), [none, ...words], "", picked("first")),
      select(say("swapSecond"), [none, ...words], "", picked("second")),
      make("button", { type: "button", class: "primary", click: attempt }, say("tryIt")),
    ),
    status,
    result,
  );
}

/** Two sentences that differ by where "not" stands, with and without positions. */
function orderPreset(glass) {
  const { record, say } = glass;
  const preset = PAIRS[record.model.source_language] ?? [record.source.text, record.source.text.split(" ").reverse().join(" ")];
  const boxes = preset.map((text, number) => {
    const box = make("input", { type: "text", dir: "auto", value: text, "aria-label": say("sentenceNumber", { number: number + 1 }) });
    return box;
  });
  const status = make("p", { class: "quiet status", role: "status" });
  const result = make("div", { class: "result", "aria-live": "polite" });
  const compare = async () => {
    const rows = [];
    for (const edits of [[], [{ kind: "positions_off" }]]) {
      const answers = [];
      for (const box of boxes) answers.push(await glass.request(box.value, { edits, arrays: "none" }, status));
      if (answers.includes(null)) return;
      rows.push([say(edits.length ? "withoutPositions" : "withPositions"), ...answers.map((answer) => answer.target)]);
    }
    result.replaceChildren(pairTable(say, boxes.map((box) => box.value), rows));
  };
  return make(
    "section",
    { class: "card" },
    make("h3", {}, say("orderTitle")),
    make("p", { class: "quiet" }, say("orderText")),
    make("div", { class: "pair-inputs" }, boxes, make("button", { type: "button", class: "primary", click: compare }, say("compare"))),
    status,
    result,
  );
}

/** rows: [title, {text, score}, {text, score}] */
function pairTable(say, sentences, rows) {
  return make(
    "div",
    { class: "scroll" },
    make(
      "table",
      { class: "order" },
      make("thead", {}, make("tr", {}, make("td", {}), sentences.map((text) => make("th", { scope: "col" }, make("bdi", {}, visible(text)))))),
      make(
        "tbody",
        {},
        rows.map(([title, one, other]) =>
          make(
            "tr",
            {},
            make("th", { scope: "row" }, title),
            make("td", {}, make("bdi", {}, visible(one.text)), make("span", { class: "number" }, scoreText(one.score))),
            make("td", {}, markedChanges(one.text, other.text), make("span", { class: "number" }, scoreText(other.score))),
          ),
        ),
      ),
    ),
  );
}
