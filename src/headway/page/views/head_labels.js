// Names heads by their measures (docs/record.md), with the rule for each name.

import { make } from "./elements.js";
import { decimal, percent } from "./numbers.js";
import { attentionLabels, brief, visible } from "./tokens.js";

/** From this share of its attention on, a head is called by what it looks at. */
export const NAMED_FROM = 0.5;
const SPREAD_FROM = 1; // bits: as over two tokens
const OWN = ["previous", "same", "next", "control", "favourite"];
/** The measures of each kind of attention that are shares. */
export const SHARES = { encoder: OWN, decoder: OWN, cross: ["previous", "aligned", "next", "diagonal", "control", "favourite"] };

/** The name of a measure; of cross-attention the neighbours are those of the aligned token. */
export function measureName(say, kind, measure) {
  return say(`by_${named(kind, measure)}`);
}

export function amount(measure, value, say) {
  return measure === "entropy" ? say("bits", { count: decimal(value) }) : percent(value);
}

/** -> {name, share}: the measure with the largest share; name: "spread" or "other" where none reaches NAMED_FROM */
export function labelOf(kind, measures) {
  const [name, share] = SHARES[kind]
    .map((measure) => [measure, measures[measure] ?? 0])
    .toSorted((one, other) => other[1] - one[1])[0];
  if (share >= NAMED_FROM) return { name, share };
  return { name: measures.entropy >= SPREAD_FROM ? "spread" : "other", share };
}

/** [{layer, head, measures}], layer by layer; none of a kind that the model hasn't. */
export function measuredHeads({ attention }, kind) {
  return (attention[kind]?.measures ?? []).flatMap((heads, layer) => heads.map((measures, head) => ({ layer, head, measures })));
}

/** The label of a head in a word or two. */
export function shortLabel({ record, say }, kind, measures) {
  const { name } = labelOf(kind, measures);
  return say(`label_${named(kind, name)}`, tokensOf(record, kind, measures));
}

/** A sentence about the head's main behaviour, and the rule for it. */
export function sentenceAbout({ record, say }, kind, measures) {
  const { name, share } = labelOf(kind, measures);
  const values = { share: percent(share), bits: decimal(measures.entropy), least: percent(NAMED_FROM), ...tokensOf(record, kind, measures) };
  const rule = ["spread", "other"].includes(name) ? "ruleSpread" : ["aligned", "diagonal"].includes(name) ? `rule_${name}` : "ruleShare";
  return [make("b", {}, shortLabel({ record, say }, kind, measures)), ": ", say(`does_${named(kind, name)}`, values), " ", make("span", { class: "quiet" }, say(rule, values))];
}

function named(kind, name) {
  return kind === "cross" && (name === "previous" || name === "next") ? `${name}_aligned` : name;
}

/** The control symbol among the keys, and the key that gets most beside it. */
function tokensOf(record, kind, { favourite_key: favourite }) {
  const [, keys] = attentionLabels(record, kind);
  return { token: controlOf(record, kind), favourite: favourite === null ? "" : brief(keys[favourite], 24) };
}

/** The control symbol among the keys. */
export function controlOf(record, kind) {
  return visible(kind === "decoder" ? record.start.piece : record.source.tokens.at(-1).piece);
}
