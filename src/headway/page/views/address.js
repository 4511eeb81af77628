// Links that hold the view: #view=heads&kind=cross&layer=2&head=1&lang=ko. Numbers begin with 1, as they are shown. Beside
// a live model they hold the sentence and its edits too, which the page around the box looks up (sentenceOf).

import { sourceAsItWas } from "./asking.js";
import { chosenHead } from "./heads.js";
import { openIn } from "./machine.js";
import { comparedWith } from "./side_by_side.js";
import { keyOf } from "./trying.js";
import { chosenSwitches } from "./what_if.js";

/** The state of the box as the part of an address after the #. further: what it holds besides. */
export function addressOf(glass, view, language, further = {}) {
  const { record, chosen } = glass;
  const parts = { view, lang: language, ...further };
  if (glass.inspect) Object.assign(parts, { text: sourceAsItWas(record) }, tagOf(record) ? { tag: tagOf(record) } : {}, record.edits.length ? { edits: JSON.stringify(record.edits) } : {});
  if (view === "heads") {
    const { kind, chosen: head } = chosenHead(glass);
    Object.assign(parts, { kind }, head ? { layer: head[0] + 1, head: head[1] + 1 } : {});
    const { head: beside, record: other } = comparedWith(glass);
    Object.assign(parts, beside ? { beside: beside.map((one) => one + 1).join(".") } : {}, other ? { with: sourceAsItWas(other) } : {});
  }
  if (view === "machine") {
    const { block, layers } = openIn(glass);
    if (block) Object.assign(parts, { block, layer: layers[block.split(" ")[0]] + 1 });
    if (chosen.source !== null) parts.token = chosen.source + 1;
  }
  if (["machine", "steps", "needs"].includes(view) && chosen.target !== null && chosen.target < record.steps.length) parts.step = chosen.target + 1;
  const off = view === "whatIf" ? chosenSwitches(glass).off : null;
  if (off) parts.off = off.join(",");
  return new URLSearchParams(parts).toString();
}

/** Takes over what an address holds, as far as there is such a thing in the record. -> {view, lang}, each perhaps undefined */
export function readAddress(glass, text) {
  const parts = Object.fromEntries(new URLSearchParams(text));
  const { record, chosen } = glass;
  const number = (name, count) => {
    const value = Number(parts[name]);
    return Number.isInteger(value) && value >= 1 && value <= count ? value - 1 : null;
  };
  if (parts.view === "heads" && Object.hasOwn(record.attention, parts.kind ?? "cross")) {
    const kind = parts.kind ?? "cross";
    const { layers, heads } = record.attention[kind];
    const [layer, head] = [number("layer", layers), number("head", heads)];
    Object.assign(chosenHead(glass), { kind, order: "layer", chosen: layer === null || head === null ? null : [layer, head] });
    const beside = (parts.beside ?? "").split(".").map(Number);
    const compared = comparedWith(glass);
    compared.head = beside.length === 2 && beside.every((one, at) => one >= 1 && one <= [layers, heads][at]) ? beside.map((one) => one - 1) : null;
    if (parts.with && parts.with !== compared.text) Object.assign(compared, { text: parts.with, record: null, asks: true });
  }
  if (parts.view === "machine") {
    const open = openIn(glass);
    open.block = parts.block ?? null;
    const stack = parts.block?.split(" ")[0];
    if (Object.hasOwn(open.layers, stack)) open.layers[stack] = number("layer", record.model.config[`${stack}_layers`]) ?? 0;
    chosen.source = number("token", record.source.tokens.length);
  }
  if (["machine", "steps", "needs"].includes(parts.view)) chosen.target = number("step", record.steps.length);
  const switches = parts.view === "whatIf" && parts.off !== undefined ? chosenSwitches(glass) : null;
  if (switches && parts.off !== switches.off?.join(",")) Object.assign(switches, { off: parts.off.split(","), found: null, latest: null });
  return parts;
}

/** The tag of a target language, which stands for no characters of the text, or "". */
export function tagOf({ source: { tokens: [first] } }) {
  return first.end > first.start ? "" : first.piece;
}

/** The sentence that an address names, with its edits: {text, tag, edits}, or null; also null where it is the record's. */
export function sentenceOf(address, record = null) {
  const parts = new URLSearchParams(address);
  try {
    const edits = JSON.parse(parts.get("edits") ?? "[]");
    const [text, tag] = [parts.get("text"), parts.get("tag") ?? ""];
    const isShown = record && text === sourceAsItWas(record) && tag === tagOf(record) && keyOf(edits) === keyOf(record.edits);
    return text && Array.isArray(edits) && !isShown ? { text, tag, edits } : null;
  } catch {
    return null;
  }
}
