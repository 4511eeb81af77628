// The stops of the tour: where each leads, what it asks before it shows, and the model's own answer.

import { attentionOfHead } from "./attention_of_head.js";
import { chosenHead } from "./heads.js";
import { openIn } from "./machine.js";
import { percent, shareOfZeros } from "./numbers.js";
import { short } from "./scene_words.js";
import { brief, loosePiece, pieceTexts } from "./tokens.js";

/** Opens a block of the machine; stage: of an attention. */
function open(glass, block, stage = null, kind = null) {
  const state = openIn(glass);
  state.block = block;
  if (kind) state.heads[kind] = { head: 0, step: stage };
}

const first = (record, kind) => record.attention[kind].names.replace("{layer}", 0);

/** Each: name (of its texts), view, enter(glass), answer(glass) -> the values of its answer, options(glass) -> [texts, the
 * right one's number] where there are some to choose from. */
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
    answer: ({ record }) => ({ before: record.target.text, after: record.cases.find(({ edits }) => edits.length === 1 && edits[0].kind === "positions_off")?.after.text ?? "–" }),
  },
  {
    name: "query",
    view: "machine",
    enter: (glass) => open(glass, "encoder self", 1, "encoder"),
    answer: (glass) => mostLooked(glass, "encoder"),
  },
  {
    name: "scaling",
    view: "machine",
    enter: (glass) => open(glass, "encoder self", 3, "encoder"),
    answer: scaled,
  },
  {
    name: "mask",
    view: "machine",
    enter: (glass) => open(glass, "decoder self", 4, "decoder"),
    answer: ({ record }) => {
      const count = record.target.tokens.length;
      return { all: count * count, hidden: (count * (count - 1)) / 2 };
    },
  },
  {
    name: "cross",
    view: "machine",
    enter: (glass) => open(glass, "decoder cross", 5, "cross"),
    answer: (glass) => mostLooked(glass, "cross"),
  },
  {
    name: "heads",
    view: "heads",
    enter: (glass) => Object.assign(chosenHead(glass), { kind: "encoder", order: "control", chosen: null }),
    answer: ({ record }) => {
      const heads = record.attention.encoder.measures.flatMap((layer, at) => layer.map(({ control }, head) => ({ layer: at + 1, head: head + 1, control })));
      const most = heads.reduce((best, one) => (one.control > best.control ? one : best));
      return { ...most, share: percent(most.control), token: record.source.tokens.at(-1).piece };
    },
  },
  {
    name: "feedForward",
    view: "machine",
    enter: (glass) => open(glass, "encoder feed_forward"),
    answer: ({ record, get }) => {
      const hidden = get("encoder.layers.0.feed_forward.hidden");
      return { d_ff: record.model.config.d_ff, zeros: hidden ? percent(shareOfZeros(hidden)) : "–" };
    },
  },
  {
    name: "next",
    view: "steps",
    enter: (glass) => (glass.chosen.target = Math.min(1, glass.record.steps.length - 1)),
    options: ({ record }) => {
      const { top } = record.steps[Math.min(1, record.steps.length - 1)];
      const names = top.slice(0, 3).map(({ piece }) => loosePiece(piece));
      const sorted = names.toSorted();
      return [sorted, sorted.indexOf(names[0])];
    },
    answer: ({ record }) => {
      const { top } = record.steps[Math.min(1, record.steps.length - 1)];
      return { token: brief(loosePiece(top[0].piece), 24), share: percent(top[0].probability) };
    },
  },
];

/** The row of a middle token in the first head: what it looks at most. */
function mostLooked({ record, get }, kind) {
  const weights = get(`${first(record, kind)}.weights`);
  const [rows, keys] = weights.shape.slice(-2);
  const row = Math.min(1, rows - 1);
  const shares = [...weights.values.subarray(row * keys, (row + 1) * keys)];
  const most = shares.indexOf(Math.max(...shares));
  const queries = pieceTexts(kind === "encoder" ? record.source.tokens : record.target.tokens);
  return { query: brief(queries[row], 24), key: brief(pieceTexts(record.source.tokens)[most], 24), share: percent(shares[most]) };
}

/** What the largest product becomes, and how sharp its row would be without the division. */
function scaled(glass) {
  const { products, scaled: divided, width } = attentionOfHead(glass, first(glass.record, "encoder"), "encoder", 0);
  const at = products.values.indexOf(Math.max(...products.values));
  const row = Math.floor(at / products.columns);
  const sharpest = ({ values, columns }) => {
    const own = values.subarray(row * columns, (row + 1) * columns);
    const most = Math.max(...own);
    return percent(1 / own.reduce((sum, value) => sum + Math.exp(value - most), 0));
  };
  return { product: short(products.values[at]), score: short(divided.values[at]), width, share: sharpest(divided), sharp: sharpest(products) };
}
