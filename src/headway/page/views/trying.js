// Edits that are tried: what the record knows of them, what the live model says, and how that is shown.

import { asShown, sourceAsItWas } from "./asking.js";
import { sentenceAbout } from "./head_labels.js";
import { make } from "./elements.js";
import { chosenHead } from "./heads.js";
import { percent } from "./numbers.js";
import { brief, visible } from "./tokens.js";
import { targetWords, wordBars } from "./word_bars.js";

/** Of a text, with Python's white space, by which edits number them. */
export const WORDS = /(?:[^\s\x1c-\x1f\x85]|\ufeff)+/gu;
const LEAST_LOSS = 0.01; // of a probability: less is invisible
const ALWAYS_TRUE = ["look_ahead_off", "scaling_off"]; // reasons that hold however sure the model is
const casesByEdits = new WeakMap();

/** The record's translation: {text, words}. */
export function translationOf(record) {
  return { text: record.target.text, words: targetWords(record) };
}

/** The effect of edits: from the record's cases, else from the live model. -> {edits, source, after, before} or null */
async function outcome(glass, edits, status) {
  const { record } = glass;
  const known = knownCase(record, edits);
  if (known || !glass.inspect) {
    glass.begin(status, ...(known ? [] : ["notTried"]));
    return known;
  }
  return (await askCases(glass, [edits], status))?.[0] ?? null;
}

/** The live model's cases of several edits; null where there is no answer. */
export async function askCases(glass, cases, status) {
  const { record } = glass;
  const options = { ...asShown(record), cases, arrays: "none" }; // so that the score of before is of the translation shown
  return (await glass.request(sourceAsItWas(record), options, status))?.cases ?? null;
}

/** The record's case of these edits; null: none. */
export function knownCase(record, edits) {
  if (!casesByEdits.has(record)) casesByEdits.set(record, new Map(record.cases.map((one) => [keyOf(one.edits), one])));
  return casesByEdits.get(record).get(keyOf(edits)) ?? null;
}

/** Edits as a text that is the same for the same edits. */
export function keyOf(edits) {
  return JSON.stringify(edits.map((edit) => Object.entries(edit).toSorted()));
}

/** Names of edits, a few words each; words are named as they stood when they were swapped. */
export function editNames({ record, say }, edits) {
  const words = sourceAsItWas(record).match(WORDS) ?? [];
  const wordAt = (number) => brief(visible(words[number] ?? `${number + 1}`), 30);
  return edits.map((edit) => {
    if (edit.kind === "head_off") return say("edit_head_off", { kind: say(`kind_${edit.attention}`), layer: edit.layer + 1, head: edit.head + 1 });
    if (edit.kind !== "swap_words") return say(`edit_${edit.kind}`);
    const name = say("edit_swap_words", { first: wordAt(edit.first), second: wordAt(edit.second) });
    [words[edit.first], words[edit.second]] = [words[edit.second], words[edit.first]];
    return name;
  });
}

/** Before and after, word by word: {text, words} each. now: the words of before as the edited model holds them. */
export function comparison({ say }, before, after, now = null) {
  const same = before.text === after.text;
  const held = same ? after.words : now;
  const line = (name, text) => [make("dt", {}, say(name)), make("dd", {}, text)];
  return make(
    "dl",
    { class: "comparison" },
    line("before", wordBars(before.words, { kind: "before", now: held?.map(({ probability }) => probability) })),
    same ? null : line("after", wordBars(after.words, { since: before.words })),
  );
}

/** Says so, and why, where two translations are one. edits: those that were made; now: the words as the edited model holds
 * them; after: {text}. */
export function unchanged(glass, edits, before, now, after) {
  if (before.text !== after.text) return null;
  const { say } = glass;
  const losses = before.words.map(({ probability }, place) => (probability ?? 0) - (now[place]?.probability ?? 0));
  const place = losses.indexOf(Math.max(...losses));
  const sure = losses[place] < LEAST_LOSS;
  const values = {
    word: visible(before.words[place]?.text ?? ""),
    before: percent(before.words[place]?.probability),
    after: percent(now[place]?.probability),
  };
  return make("p", { class: "seen" }, make("b", {}, say("unchanged")), " ", say(sure ? "unchangedSure" : "unchangedLess", values), " ", ...reason(glass, edits, sure));
}

/** Why one edit may change nothing; sure: whether the model is as sure as before, so that it makes nothing of what was taken
 * away. Of several edits together nothing is said. */
function reason(glass, edits, sure) {
  if (edits.length !== 1) return [];
  const [{ kind, attention, layer, head }] = edits;
  const why = sure || ALWAYS_TRUE.includes(kind) ? [glass.say(`same_${kind}`), " "] : [];
  if (kind !== "head_off") return why;
  return [...why, ...sentenceAbout(glass, attention, glass.record.attention[attention].measures[layer][head]).slice(0, 3)];
}

/** The effect of a case beside the record's own edits: its title, and the translation before and after. */
function result(glass, { edits, source, after, before }, inside) {
  const { record, say } = glass;
  const own = new Set(record.edits.map((edit) => keyOf([edit])));
  const names = editNames(glass, edits);
  const added = edits.filter((edit) => !own.has(keyOf([edit])));
  const [head] = added.filter(({ kind }) => kind === "head_off");
  const swap = added.some(({ kind }) => kind === "swap_words");
  const translation = translationOf(record);
  const button = (name, click) => make("button", { type: "button", click }, say(name));
  return [
    make("h4", {}, names.length ? names.join(" · ") : say("asTheModelIs")),
    head && before.score !== null ? make("p", { class: "left" }, say("isLeft", { share: percent(Math.exp(before.score - record.target.score)) })) : null,
    head || swap ? make("p", { class: "quiet" }, say(head ? "why_head_off" : "why_swap_words")) : null, // of the others it stands beside the switch
    source === record.source.text ? null : make("p", { class: "quoted" }, make("bdi", {}, visible(source))),
    comparison(glass, translation, after, before.words),
    unchanged(glass, added, translation, before.words, after),
    make("div", { class: "controls" }, head ? button("seeHead", () => openHead(glass, head)) : null, glass.inspect ? button("lookInsideEdited", inside) : null),
  ].filter((part) => part);
}

function openHead(glass, { attention, layer, head }) {
  Object.assign(chosenHead(glass), { kind: attention, order: "layer", chosen: [layer, head] });
  glass.open("heads");
}

/** The last result of that name, and what gave it; latest: an object while one is tried. */
export function keptResult(glass, name) {
  return glass.kept(`whatIf ${name}`, { found: null, latest: null });
}

/** A place for results, and for what there is to say meanwhile; the last result stays when the box is drawn again. */
export function results(glass, name) {
  const kept = keptResult(glass, name);
  const place = make("div", { class: "result", "aria-live": "polite" });
  const status = glass.status(`whatIf ${name}`);
  const show = (found) => {
    kept.found = found;
    place.classList.remove("old");
    const inside = () => glass.ask(sourceAsItWas(glass.record), { edits: found.edits }, status);
    place.replaceChildren(...result(glass, found, inside));
  };
  const clear = () => {
    Object.assign(kept, { found: null, latest: null });
    glass.begin(status);
    place.replaceChildren();
  };
  const attempt = async (edits) => {
    const latest = {};
    Object.assign(kept, { found: null, latest }); // what is shown until the answer is there is of other edits
    place.classList.add("old");
    const found = await outcome(glass, edits, status);
    if (kept.latest !== latest) return null;
    kept.latest = null;
    if (found) show(found);
    else place.replaceChildren();
    return found;
  };
  if (kept.found) show(kept.found);
  return { elements: [status, place], attempt, show, clear, kept };
}
