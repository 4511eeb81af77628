// Does the order of the words matter? Two sentences of the same words, with positions and without.

import { markedChanges } from "./changes.js";
import { make } from "./elements.js";
import { decimal } from "./numbers.js";
import { visible } from "./tokens.js";

/** The pair, to be tried on the live model, or, without one, as the record has it; null where it has none. */
export function orderPreset(glass) {
  const { say, record } = glass;
  const { order } = record;
  const tried = order?.with_positions.length;
  if (!glass.inspect && !tried) return null;
  const not = order && (order.kind ?? "not") === "not";
  const kept = glass.kept("order", { sentences: order?.sentences ?? reversedPair(record.source.text), found: tried ? order : null });
  const place = make("div", { class: "result", "aria-live": "polite" });
  const show = (found) => {
    kept.found = found;
    place.replaceChildren(orderTable(say, found), seen(say, found));
  };
  if (kept.found) show(kept.found);
  return make(
    "section",
    { class: "card" },
    make("h3", {}, say(not ? "orderTitle" : "reversedTitle")),
    make("p", { class: "quiet" }, `${say("orderText")}${record.edits.length ? ` ${say("orderAsItIs")}` : ""}`),
    glass.inspect ? orderForm(glass, kept, show) : null,
    place,
  );
}

function reversedPair(text) {
  return [text, text.split(" ").reverse().join(" ")];
}

function orderForm(glass, kept, show) {
  const { say } = glass;
  const boxes = kept.sentences.map((text, number) => {
    const change = () => (kept.sentences = boxes.map((box) => box.value));
    return make("input", { type: "text", dir: "auto", value: text, input: change, "aria-label": say("sentenceNumber", { number: number + 1 }) });
  });
  const status = make("p", { class: "quiet status", role: "status" });
  const compare = async () => {
    const found = { sentences: boxes.map((box) => box.value), with_positions: [], without_positions: [] };
    for (const text of found.sentences) {
      const options = { cases: [[{ kind: "positions_off" }]], arrays: "none" };
      const answer = await glass.request(text, options, status);
      if (!answer) return;
      found.with_positions.push(answer.target);
      found.without_positions.push(answer.cases[0].after);
    }
    show(found);
  };
  return make(
    "div",
    { class: "pair-inputs" },
    boxes,
    make("button", { type: "button", class: "primary", click: compare }, say("compare")),
    status,
  );
}

/** order: {sentences, with_positions, without_positions}, two each; translations have text and score. */
function orderTable(say, order) {
  const cell = (text, { score }) => make("td", {}, text, " ", make("span", { class: "number" }, decimal(score)));
  const row = (title, [one, other]) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, title, one.text === other.text ? make("b", {}, ` (${say("alike")})`) : null),
      cell(make("bdi", {}, visible(one.text)), one),
      cell(markedChanges(one.text, other.text), other),
    );
  return make(
    "div",
    { class: "scroll" },
    make(
      "table",
      { class: "order" },
      make(
        "thead",
        {},
        make("tr", {}, make("td", {}), order.sentences.map((text) => make("th", { scope: "col" }, make("bdi", {}, visible(text))))),
      ),
      make(
        "tbody",
        {},
        row(say("withPositions"), order.with_positions),
        row(say("withoutPositions"), order.without_positions),
      ),
    ),
  );
}

/** What came out, in words: whether the two translations differ, with positions and without. */
function seen(say, { with_positions: [one, other], without_positions: [blind, otherBlind] }) {
  const name = (first, second) => (first.text === second.text ? "alike" : "differ");
  return make("p", { class: "seen" }, `${say(`order_with_${name(one, other)}`)} ${say(`order_without_${name(blind, otherBlind)}`)}`);
}
