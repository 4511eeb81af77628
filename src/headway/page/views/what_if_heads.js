// Each head switched off: how much of the translation's probability is left without it.

import { headColour } from "./colours.js";
import { columnsFor, make } from "./elements.js";
import { percent } from "./numbers.js";
import { visible } from "./tokens.js";
import { askCases, editNames, keyOf, knownCase, results } from "./trying.js";

const AT_ONCE = 4; // heads of a request
const LEAST_FALL = 0.5; // of a logarithm: where no head matters more, none has the strongest colour

/** All heads, each to be switched off; where all were tried, how much each of them matters, that of the largest loss first. */
export function headsOff(glass) {
  const { record, say } = glass;
  const place = results(glass, "heads");
  const all = Object.entries(record.attention).flatMap(([kind, about]) => headsOf(kind, about));
  const heads = all.filter((edit) => !isOff(record, edit));
  const known = heads.map((edit) => knownCase(record, [...record.edits, edit]));
  const tried = known.filter((one) => one && one.before.score !== null);
  if (tried.length && !place.kept.found) {
    place.show(tried.reduce((best, one) => (one.before.score < best.before.score ? one : best)));
  }
  const effects = (place.kept.effects ??= new Map());
  const note = ({ edits, after, before: { score } }) => {
    if (score !== null) effects.set(keyOf(edits.slice(-1)), { fall: record.target.score - score, text: after.text });
  };
  tried.forEach(note);
  const together = make("input", { type: "checkbox", change: () => (place.kept.together = together.checked) });
  together.checked = place.kept.together ?? false;
  const attempt = async (edit) => {
    const others = together.checked ? (place.kept.chosen ?? []).filter((one) => keyOf([one]) !== keyOf([edit])) : [];
    place.kept.chosen = [...others, edit];
    const found = await place.attempt([...record.edits, ...place.kept.chosen]);
    if (found && !others.length) note(found);
    grids.forEach((one) => one.refresh());
  };
  const status = glass.status("whatIf all heads");
  const table = make("div", {});
  const showTable = () => {
    place.kept.all = true;
    button.hidden = true;
    table.replaceChildren(headTable(glass, heads, effects));
    return table.firstChild;
  };
  /** Whether all have been tried, and not that a request failed, or that the reader has gone on; what was tried is kept. */
  const haveTried = async (open) => {
    for (let at = 0; at < open.length && glass.inspect; at += AT_ONCE) {
      const found = await askCases(place.kept.drawn.glass, open.slice(at, at + AT_ONCE).map((edit) => [...record.edits, edit]), status);
      if (!found) return false;
      found.forEach(note);
      const { drawn } = place.kept;
      if (!drawn.button.isConnected) return false;
      drawn.grids.forEach((one) => one.refresh());
      drawn.glass.begin(status, "triedHeads", { done: Math.min(at + AT_ONCE, open.length), count: open.length });
    }
    return true;
  };
  const tryAll = async () => {
    if (place.kept.trying) return;
    place.kept.trying = true;
    const done = await haveTried(heads.filter((edit) => !effects.has(keyOf([edit]))));
    place.kept.trying = false;
    if (!done) return;
    const { drawn } = place.kept;
    drawn.glass.begin(status);
    const shown = drawn.showTable();
    if (document.activeElement === document.body) shown.focus({ preventScroll: true });
  };
  const button = make("button", { type: "button", class: "try-all", click: tryAll }, say("tryAll", { count: heads.length }));
  const grids = Object.entries(record.attention).map(([kind, about]) => headGrid(glass, kind, about, effects, attempt));
  place.kept.drawn = { glass, button, grids, showTable }; // as the box stands now: it may be drawn again meanwhile
  if (place.kept.all) showTable();
  return make(
    "section",
    { class: "card" },
    make("h3", {}, say("headsOffTitle")),
    make("p", { class: "quiet" }, say(tried.length ? "headsOffTried" : "headsOffText")),
    make("div", { class: "cards" }, grids.map((one) => one.element)),
    make("p", { class: "quiet" }, say("headsOffScale", { share: percent(Math.exp(-LEAST_FALL)) })),
    glass.inspect ? make("label", { class: "check" }, together, say("headsTogether")) : null,
    button,
    status,
    table,
    place.elements,
  );
}

/** A row for each head: how much is left without it, and what is written then; the largest loss first. */
function headTable({ record, say }, heads, effects) {
  const cell = (tag, text, scope = null) => make(tag, { scope }, text);
  const known = heads.map((edit) => ({ ...edit, ...effects.get(keyOf([edit])) })).filter(({ fall }) => fall !== undefined);
  const rows = known.toSorted((one, other) => other.fall - one.fall).map(({ attention, layer, head, fall, text }) => {
    const same = text === record.target.text;
    const written = same ? make("span", { class: "quiet" }, say("sameText")) : make("bdi", {}, visible(text));
    const name = cell("th", `${say(`kind_${attention}`)} ${layer + 1}·${head + 1}`, "row");
    return make("tr", {}, name, cell("td", percent(Math.exp(-fall))), cell("td", written));
  });
  const names = ["headColumn", "leftColumn", "textColumn"].map((name) => cell("th", say(name), "col"));
  const table = make(
    "table",
    { class: "order heads-off" },
    make("caption", {}, say("headsTable")),
    make("thead", {}, make("tr", {}, names)),
    make("tbody", {}, rows),
  );
  return make("div", { class: "scroll-table", tabindex: 0, role: "region", "aria-label": say("headsTable") }, table);
}

/** Whether the record is of a model without this head already. */
function isOff({ edits }, edit) {
  return edits.some((one) => keyOf([one]) === keyOf([edit]));
}

/** For each head of a kind of attention the edit that switches it off. */
function headsOf(attention, { layers, heads }) {
  return Array.from({ length: layers * heads }, (_, at) => ({ kind: "head_off", attention, layer: Math.floor(at / heads), head: at % heads }));
}

/** effects: by edit {fall: how much likelier the translation is with the head, text}, of the heads that were tried.
 * -> {element, refresh} */
function headGrid(glass, kind, about, effects, attempt) {
  const { record, say } = glass;
  const heads = headsOf(kind, about).map((edit) => {
    const number = make("span", { class: "change" });
    const told = make("span", { class: "unseen" });
    const button = make(
      "button",
      {
        type: "button",
        class: "head effect",
        disabled: isOff(record, edit),
        "--head": headColour(edit.head),
        click: () => attempt(edit),
      },
      make("span", {}, `${edit.layer + 1}·${edit.head + 1}`),
      number,
      told,
    );
    return { edit, button, number, told };
  });
  const refresh = () => {
    const most = Math.max(...[...effects.values()].map(({ fall }) => fall), LEAST_FALL);
    for (const { edit, button, number, told } of heads) {
      const fall = effects.get(keyOf([edit]))?.fall;
      const [name] = editNames(glass, [edit]);
      told.textContent = fall === undefined ? ` ${name}` : ` ${say("isLeft", { share: percent(Math.exp(-fall)) })}. ${name}`;
      button.style.setProperty("--share", Math.max(0, (fall ?? 0) / most).toFixed(3));
      number.textContent = fall === undefined ? "" : `${Math.round(100 * Math.exp(-fall))}%`;
    }
  };
  refresh();
  const grid = make(
    "div",
    { class: "grid effects", role: "group", "aria-label": say(`kind_${kind}`), "--heads": columnsFor(about.heads) },
    heads.map(({ button }) => button),
  );
  return { element: make("div", {}, make("h4", {}, say(`kind_${kind}`)), grid), refresh };
}
