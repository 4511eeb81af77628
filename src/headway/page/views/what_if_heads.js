// Each head switched off: how much of the translation's probability is left without it.

import { headColour } from "./colours.js";
import { columnsFor, make } from "./elements.js";
import { percent } from "./numbers.js";
import { editNames, keyOf, knownCase, results } from "./trying.js";

const LEAST_FALL = 0.5; // of a logarithm: where no head matters more, none has the strongest colour

/** All heads, each to be switched off; where all were tried, how much each of them matters, that of the largest loss first. */
export function headsOff(glass) {
  const { record, say } = glass;
  const place = results(glass, "heads");
  const known = Object.entries(record.attention).flatMap(([attention, about]) =>
    headsOf(attention, about).map((edit) => knownCase(record, [...record.edits, edit])),
  );
  const tried = known.filter((one) => one && one.before.score !== null);
  if (tried.length && !place.kept.found) {
    place.show(tried.reduce((best, one) => (one.before.score < best.before.score ? one : best)));
  }
  const falls = (place.kept.falls ??= new Map());
  const note = ({ edits, before: { score } }) => score === null || falls.set(keyOf(edits.slice(-1)), record.target.score - score);
  tried.forEach(note);
  const attempt = async (edit) => {
    const found = await place.attempt([...record.edits, edit]);
    if (found) note(found);
    grids.forEach((one) => one.refresh());
  };
  const grids = Object.entries(record.attention).map(([kind, about]) => headGrid(glass, kind, about, falls, attempt));
  return make(
    "section",
    { class: "card" },
    make("h3", {}, say("headsOffTitle")),
    make("p", { class: "quiet" }, say(tried.length ? "headsOffTried" : "headsOffText")),
    make("div", { class: "cards" }, grids.map((one) => one.element)),
    make("p", { class: "quiet" }, say("headsOffScale", { share: percent(Math.exp(-LEAST_FALL)) })),
    place.elements,
  );
}

/** For each head of a kind of attention the edit that switches it off. */
function headsOf(attention, { layers, heads }) {
  return Array.from({ length: layers * heads }, (_, at) => ({ kind: "head_off", attention, layer: Math.floor(at / heads), head: at % heads }));
}

/** falls: by edit, how much likelier the translation is with the head, of the heads that were tried. -> {element, refresh} */
function headGrid(glass, kind, about, falls, attempt) {
  const { record, say } = glass;
  const off = new Set(record.edits.map((edit) => keyOf([edit])));
  const heads = headsOf(kind, about).map((edit) => {
    const number = make("span", { class: "change" });
    const button = make(
      "button",
      { type: "button", class: "head effect", disabled: off.has(keyOf([edit])), click: () => attempt(edit) },
      make("span", {}, `${edit.layer + 1}·${edit.head + 1}`),
      number,
    );
    button.style.setProperty("--head", headColour(edit.head));
    return { edit, button, number };
  });
  const refresh = () => {
    const most = Math.max(...falls.values(), LEAST_FALL);
    for (const { edit, button, number } of heads) {
      const fall = falls.get(keyOf([edit]));
      const [name] = editNames(glass, [edit]);
      button.setAttribute("aria-label", fall === undefined ? name : `${name}: ${say("isLeft", { share: percent(Math.exp(-fall)) })}`);
      button.style.setProperty("--share", Math.max(0, (fall ?? 0) / most).toFixed(3));
      number.textContent = fall === undefined ? "" : `${Math.round(100 * Math.exp(-fall))}%`;
    }
  };
  refresh();
  const buttons = heads.map(({ button }) => button);
  const grid = make("div", { class: "grid effects", role: "group", "aria-label": say(`kind_${kind}`) }, buttons);
  grid.style.setProperty("--heads", columnsFor(about.heads));
  return { element: make("div", {}, make("h4", {}, say(`kind_${kind}`)), grid), refresh };
}

