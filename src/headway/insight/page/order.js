// Does the place of "not" matter? Two sentences of the same words, with positions and without.

import { markedChanges } from "./changes.js";
import { make } from "./elements.js";
import { visible } from "./tokens.js";

/** The pair, to be tried on the live model, or, without one, as the record has it; null where it has none. */
export function orderPreset(glass) {
  const { say, record } = glass;
  const tried = record.order?.with_positions.length;
  if (!glass.inspect && !tried) return null;
  const place = make("div", { class: "result", "aria-live": "polite" });
  if (tried) place.append(orderTable(say, record.order));
  return make(
    "section",
    { class: "card" },
    make("h3", {}, say("orderTitle")),
    make("p", { class: "quiet" }, say("orderText")),
    glass.inspect ? orderForm(glass, place) : null,
    place,
  );
}

function orderForm(glass, place) {
  const { record, say } = glass;
  const own = [record.source.text, record.source.text.split(" ").reverse().join(" ")];
  const boxes = (record.order?.sentences ?? own).map((text, number) =>
    make("input", { type: "text", dir: "auto", value: text, "aria-label": say("sentenceNumber", { number: number + 1 }) }),
  );
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
    place.replaceChildren(orderTable(say, found));
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
  const row = (title, [one, other]) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, title),
      make("td", {}, make("bdi", {}, visible(one.text))),
      make("td", {}, markedChanges(one.text, other.text)),
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
