// The stops of the tour: where each leads, what it asks before it shows, and the model's own answer.

import { attentionOfHead, sublayerOf } from "./attention_of_head.js";
import { controlOf } from "./head_labels.js";
import { chosenHead } from "./heads.js";
import { openIn } from "./machine.js";
import { percent, rowOf, shareOfZeros } from "./numbers.js";
import { orderPair, orderVerdict } from "./order.js";
import { short } from "./scene_words.js";
import { isEdited } from "./stages.js";
import { sink, tellingAlignment, tellingQuery } from "./telling.js";
import { brief, loosePiece, pieceTexts, visible } from "./tokens.js";

/** Opens a block of the machine; stage: of an attention, in a layer and a head. */
function open(glass, block, stage = null, kind = null, { layer, head } = { layer: 0, head: 0 }) {
  const state = openIn(glass);
  state.block = block;
  if (!kind) return;
  state.layers[kind === "encoder" ? "encoder" : "decoder"] = layer;
  state.heads[kind] = { head, step: stage };
}

/** Each: name (of its texts), view, of (a selector of what it speaks of, where that isn't the open block's first part),
 * enter(glass), answer(glass) -> the values of its texts, and `text` and `answer` where they are other texts than the usual;
 * find(glass, status): async, gives what `answer` needs besides; options(glass) -> the texts to choose
 * from, the right one first, where there are some. */
export const STOPS = [
  {
    name: "tokens",
    view: "machine",
    enter: (glass) => open(glass, "encoder tokens"),
    answer: ({ record }) => ({ count: record.source.tokens.length, tokens: pieceTexts(record.source.tokens).join(" | ") }),
  },
  {
    name: "positions",
    view: "machine",
    enter: (glass) => open(glass, "encoder positions"),
    find: orderPair,
    answer: ({ say }, pair) => {
      if (!pair) return { answer: pair === null ? "orderNone" : "notTried" };
      const { sentences, with_positions: seeing, without_positions: blind } = pair;
      const texts = [sentences, seeing.map(({ text }) => text), blind.map(({ text }) => text)];
      const [pairs, seen, unseen] = texts.map((both) => both.map((text) => `“${visible(text)}”`).join(", "));
      return { sentences: pairs, seen, unseen, verdict: orderVerdict(say, pair) };
    },
  },
  {
    name: "query",
    view: "machine",
    enter: (glass) => {
      const telling = tellingQuery(glass);
      open(glass, "encoder self", 1, "encoder", telling);
      glass.chosen.source = telling.row;
    },
    answer: (glass) => looked(glass, glass.record.source, tellingQuery(glass)),
  },
  {
    name: "scaling",
    view: "machine",
    enter: (glass) => {
      open(glass, "encoder self", 3, "encoder");
      glass.chosen.source = null;
    },
    answer: scaled,
  },
  {
    name: "mask",
    view: "machine",
    enter: (glass) => open(glass, "decoder self", 4, "decoder"),
    answer: (glass) => {
      const count = glass.record.target.tokens.length;
      const values = { all: count * count, hidden: (count * (count - 1)) / 2 };
      return isEdited(glass, "look_ahead_off") ? { ...values, answer: "maskOffText" } : values;
    },
  },
  {
    name: "cross",
    view: "machine",
    enter: (glass) => {
      const telling = tellingAlignment(glass);
      open(glass, "decoder cross", 5, "cross", telling);
      glass.chosen.target = telling.row;
    },
    answer: (glass) => looked(glass, glass.record.target, tellingAlignment(glass)),
  },
  {
    name: "heads",
    view: "heads",
    of: ".grid",
    enter: (glass) => Object.assign(chosenHead(glass), { kind: sink(glass).kind, order: "control", chosen: null }),
    answer: (glass) => {
      const { kind, layer, head, measures, isSink } = sink(glass);
      const values = { kind: glass.say(`kind_${kind}`), layer: layer + 1, head: head + 1, share: percent(measures.control), token: controlOf(glass.record, kind) };
      return isSink ? values : { ...values, answer: "tour_heads_none" };
    },
  },
  {
    name: "feedForward",
    view: "machine",
    enter: (glass) => open(glass, "encoder feed_forward"),
    answer: ({ record, get }) => {
      const hidden = get("encoder.layers.0.feed_forward.hidden");
      const { d_model, d_ff, activation } = record.model.config;
      return { d_model, d_ff, activation, zeros: hidden ? shareOfZeros(hidden) : "–", text: activation === "relu" ? undefined : "wideningOtherText" };
    },
  },
  {
    name: "next",
    view: "steps",
    of: ".step-bars",
    enter: (glass) => (glass.chosen.target = Math.min(1, glass.record.steps.length - 1)),
    options: ({ record }) => {
      const { top } = record.steps[Math.min(1, record.steps.length - 1)];
      return [...new Set(top.map(({ piece }) => loosePiece(piece)))].slice(0, 3);
    },
    answer: ({ record }) => {
      const { top } = record.steps[Math.min(1, record.steps.length - 1)];
      return { token: brief(loosePiece(top[0].piece), 24), share: percent(top[0].probability) };
    },
  },
];

/** The strongest weight of a row. queries: the text that the rows are of */
function looked({ record }, queries, { layer, head, row, key, share }) {
  const name = ({ tokens }, place) => brief(pieceTexts(tokens)[place], 24);
  return { layer: layer + 1, head: head + 1, query: name(queries, row), key: name(record.source, key), share: percent(share) };
}

/** The largest product after the division, and how sharp its row would be without. */
function scaled(glass) {
  const { products, scaled: divided, width } = attentionOfHead(glass, sublayerOf(glass.record, "encoder", 0), "encoder", 0);
  const at = products.values.indexOf(Math.max(...products.values));
  const row = Math.floor(at / products.columns);
  const sharpest = (matrix) => {
    const own = rowOf(matrix, row);
    const most = Math.max(...own);
    return percent(1 / own.reduce((sum, value) => sum + Math.exp(value - most), 0));
  };
  const answer = isEdited(glass, "scaling_off") ? "unscaledText" : undefined;
  return { product: short(products.values[at]), score: short(divided.values[at]), width, share: sharpest(divided), sharp: sharpest(products), answer };
}
