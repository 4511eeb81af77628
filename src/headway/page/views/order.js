// Shows the use of positions: two sentences of the same words, translated with positions and without.

import { sourceAsItWas } from "./asking.js";
import { make } from "./elements.js";
import { visible } from "./tokens.js";
import { wordBars } from "./word_bars.js";

/** The two sentences that were chosen for the model, and, beside a live one, two of the reader's own. */
export function orderCard(glass) {
  const { say, record } = glass;
  if (!record.order && !glass.inspect) return null;
  const kept = glass.kept(`order ${sourceAsItWas(record)}`, { sentences: null, found: record.order }, true);
  const place = make("div", { class: "result", "aria-live": "polite" });
  const status = glass.status("order");
  const form = glass.inspect ? orderForm(glass, kept, status, (found) => show(found)) : null;
  const show = (found) => {
    kept.found = found;
    place.replaceChildren(orderTable(say, found), make("p", { class: "seen" }, orderVerdict(say, found)));
  };
  const lookFor = async () => {
    const line = make("p", { class: "quiet status" });
    place.replaceChildren(line);
    const pair = await orderPair(glass, line);
    glass.unanswered ||= pair === undefined;
    if (pair === null) line.textContent = say("orderNone");
    if (!pair || kept.found) return; // the reader's own were compared meanwhile
    show(pair);
    form.fill(pair.sentences);
  };
  if (kept.found) show(kept.found);
  else lookFor();
  return make(
    "section",
    { class: "card" },
    make("h3", {}, say("orderTitle")),
    make("p", { class: "quiet" }, `${say("orderText")}${record.edits.length ? ` ${say("orderAsItIs")}` : ""}`),
    form?.element,
    status,
    place,
  );
}

/** The two sentences that were chosen for the model, as a record has them: of this one, else of the live model, which is asked
 * once. null: there are none; undefined: that isn't known. */
export async function orderPair(glass, status) {
  const { record } = glass;
  const text = sourceAsItWas(record);
  const kept = glass.kept(`order pair ${text}`, { pair: record.order ?? undefined }, true);
  if (kept.pair === undefined && glass.inspect) kept.pair = (await glass.request(text, { order: true, arrays: "none" }, status))?.order;
  return kept.pair;
}

/** -> {element, fill(sentences)} */
function orderForm(glass, kept, status, show) {
  const { say, record } = glass;
  const first = kept.sentences ?? kept.found?.sentences ?? [record.source.text, record.source.text.split(" ").reverse().join(" ")];
  const boxes = first.map((text, number) => {
    const change = () => (kept.sentences = boxes.map((box) => box.value));
    return make("input", { type: "text", dir: "auto", value: text, input: change, "aria-label": say("sentenceNumber", { number: number + 1 }) });
  });
  const fill = (sentences) => {
    if (!kept.sentences) boxes.forEach((box, number) => (box.value = sentences[number]));
  };
  const compare = async () => {
    const found = { sentences: boxes.map((box) => box.value), with_positions: [], without_positions: [] };
    for (const text of found.sentences) {
      const options = { cases: [[], [{ kind: "positions_off" }]], arrays: "none" };
      const answer = await glass.request(text, options, status);
      if (!answer) return;
      found.with_positions.push(answer.cases[0].after);
      found.without_positions.push(answer.cases[1].after);
    }
    show(found);
  };
  const button = make("button", { type: "button", class: "primary", click: compare }, say("compare"));
  return { element: make("div", { class: "pair-inputs" }, boxes, button), fill };
}

/** order: as a record has it. */
function orderTable(say, { sentences, with_positions, without_positions }) {
  const row = (title, [one, other]) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, title, one.text === other.text ? make("b", {}, ` (${say("alike")})`) : null),
      make("td", {}, wordBars(one.words)),
      make("td", {}, wordBars(other.words, { since: one.words })),
    );
  return make(
    "div",
    { class: "scroll" },
    make(
      "table",
      { class: "order" },
      make("thead", {}, make("tr", {}, make("td", {}), sentences.map((text) => make("th", { scope: "col" }, make("bdi", {}, visible(text)))))),
      make("tbody", {}, row(say("withPositions"), with_positions), row(say("withoutPositions"), without_positions)),
    ),
  );
}

/** The result in words: whether the two translations differ, with positions and without, and how they were found. */
export function orderVerdict(say, { with_positions, without_positions, tried = 0 }) {
  const name = ([one, other]) => (one.text === other.text ? "alike" : "differ");
  const [seeing, blind] = [name(with_positions), name(without_positions)];
  const said = [say(`order_with_${seeing}`), say(`order_without_${blind}`)];
  if (tried) said.push(say(seeing === "differ" && blind === "alike" ? "orderChosen" : "orderTried", { tried }));
  return said.join(" ");
}
