// The glass box: one translation of one model, seen in several views.

import { addressOf, readAddress, tagOf } from "./address.js";
import { useTheme } from "./colours.js";
import { ANALYSES } from "./analysed.js";
import { make, whenDrawn } from "./elements.js";
import { exactly } from "./exact.js";
import { headsView } from "./heads.js";
import { machineView } from "./machine.js";
import { masthead, nameOfLanguage } from "./masthead.js";
import { needsView } from "./needs.js";
import { openNumbers } from "./numbers.js";
import { stepsView } from "./steps.js";
import { termed } from "./terms.js";
import { visible } from "./tokens.js";
import { enterStop, showStop, stopByKey, tourBar } from "./tour.js";
import { hasTraining, trainingView } from "./training.js";
import { translateView } from "./translate.js";
import { tryNumbersView } from "./try_numbers.js";
import { whatIfView } from "./what_if.js";
import { languages, speaker } from "./words.js";

const VIEWS = {
  translate: translateView,
  machine: machineView,
  heads: headsView,
  steps: stepsView,
  needs: needsView,
  whatIf: whatIfView,
  training: trainingView,
  numbers: tryNumbersView,
};
const mounted = new WeakMap(); // the state of the box in an element
let lastView = "translate";

/**
 * Fills `element`. record: as docs/record.md has it; language: "en" or "ko"; inspect(text, options): async, gives a record
 * of the live model, or is absent, and then the reader chooses the language here; address: whether the page's address is
 * the box's, and holds the view and the language, or what it holds beside the view, where the page chooses the language;
 * analyses: the names of those that `inspect` can compute; measured: those of them that it has at hand; examples: sentences
 * to try; turn(): changes the language of the page around too. What the reader has opened, typed and chosen stays when the
 * box is drawn again, here or by another call for the same element.
 */
export function mountBox(
  element,
  { record, inspect = null, analyses = ANALYSES, measured = [], language = "en", address = false, examples = [], turn = null },
) {
  if (!mounted.has(element)) mounted.set(element, emptyBox());
  const state = mounted.get(element);
  if (state.record && nameOf(state.record) !== nameOf(record)) state.kept.delete("sentence");
  if (state.record !== record) {
    state.asked.clear();
    state.kept.delete("status sentence"); // one that was asked for before is overtaken
    state.questions += 1;
  }
  Object.assign(state, {
    record,
    inspect,
    computes: inspect ? analyses : [],
    measured,
    examples,
    turn,
    language: languages.includes(language) ? language : "en",
    address: location.protocol !== "about:" && address,
  });
  readView(state);
  draw(state);
  if (state.root.parentElement !== element) element.replaceChildren(state.root);
  if (inspect && location.hash) writeAddress(state);
}

/** The state of a box before its first record, with all that it listens to. */
function emptyBox() {
  const [place, news] = [make("div", {}), make("p", { class: "unseen", role: "status" })];
  const state = {
    record: null,
    kept: new Map(),
    questions: 0,
    told: new WeakMap(), // by status element, what it says: {turn: what began there last, words: arguments of `say`}
    theme: null,
    presenting: false,
    exact: false,
    asked: new Set(),
    tour: null,
    place,
    news,
    root: make("div", { class: "glass" }, place, news),
  };
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw(state));
  document.addEventListener("keydown", (event) => tourKey(state, event));
  window.addEventListener("popstate", () => {
    if (!state.address) return;
    if (!location.hash) lastView = "translate"; // as the page was opened
    readView(state);
    draw(state);
  });
  for (const event of ["click", "change", "keyup"]) state.root.addEventListener(event, () => writeAddress(state));
  return state;
}

/** The record that a box shows, or null. */
export function shownIn(element) {
  const state = mounted.get(element);
  return state?.root.isConnected ? state.record : null;
}

/** Takes over what the address holds, where it is the box's. */
function readView(state) {
  if (!state.address) return;
  const parts = readAddress(glassOf(state), location.hash.slice(1));
  if (Object.hasOwn(VIEWS, parts.view)) lastView = parts.view;
  if (state.address === true && languages.includes(parts.lang)) state.language = parts.lang;
}

/** The address holds the view after whatever the reader does. Another view is another entry of the browser's history. */
function writeAddress(state) {
  if (!state.address) return;
  const text = addressOf(state.glass, lastView, state.language, state.address === true ? {} : state.address);
  if (location.hash.slice(1) === text) return;
  const before = new URLSearchParams(location.hash.slice(1)).get("view");
  history[before === lastView ? "replaceState" : "pushState"](null, "", `#${text}`);
}

/** Leads the tour to a stop; null ends it. */
function tourTo(state, at) {
  state.tour = at === null ? null : { at, open: false };
  if (at !== null) lastView = enterStop(state.glass, at);
  draw(state);
  whenDrawn(() => showStop(state.place, at));
  writeAddress(state);
}

function tourKey(state, event) {
  if (!state.tour || !state.root.isConnected || event.altKey || event.ctrlKey || event.metaKey) return;
  const to = stopByKey(state.tour, event);
  if (to === undefined) return;
  event.preventDefault();
  tourTo(state, to);
}

/** A key that tells one record from another. */
function nameOf({ source, target, edits }) {
  return JSON.stringify([source.text, target.text, edits]);
}

/** Draws the box anew; the focus stays where it was. */
function draw(state) {
  const focus = focusIn(state.place, state.glass?.record === state.record);
  useTheme(state.theme);
  const glass = (state.glass = glassOf(state));
  state.root.lang = state.language;
  state.root.classList.toggle("presenting", state.presenting);
  if (state.theme) state.root.dataset.theme = state.theme;
  else delete state.root.dataset.theme;
  const turn = { draw: () => draw(state), tourTo: (at) => tourTo(state, at) };
  const shown = views(state, glass);
  const tour = state.tour ? [tourBar(glass, state.tour, turn.tourTo)] : [];
  state.place.replaceChildren(masthead(state, glass, turn), ...tour, ...shown);
  focus();
  if (state.address === true) document.title = `${visible(state.record.source.text).slice(0, 80)} → ${visible(state.record.target.text).slice(0, 80)} · headway`;
}

/** -> a function that gives the focus back to what stands in its place: known by its id, and, of the same record, by where
 * it stands; where nothing does, to the view. */
function focusIn(place, same) {
  const active = place.contains(document.activeElement) ? document.activeElement : null;
  if (!active) return () => {};
  const path = [];
  for (let one = active; one !== place; one = one.parentElement) path.unshift([...one.parentElement.children].indexOf(one));
  const { id, localName, type, selectionStart, selectionEnd } = active;
  return () => {
    const known = id ? place.querySelector(`#${CSS.escape(id)}`) : null;
    const there = same ? path.reduce((one, at) => one?.children[at], place) : null;
    const found = known ?? (there?.localName === localName && there.type === type ? there : place.querySelector("[role=tabpanel]"));
    found.focus({ preventScroll: true });
    if (Number.isInteger(selectionStart)) found.setSelectionRange?.(selectionStart, selectionEnd); // of a field of text
  };
}

/** The object that the views work with. */
function glassOf(state) {
  const { record, language } = state;
  const say = speaker(language);
  const stored = openNumbers(record);
  const glass = {
    record,
    say,
    inspect: state.inspect,
    computes: state.computes,
    measured: state.measured,
    examples: state.examples,
    unanswered: false, // whether a view has asked by itself in vain: the next one that is opened asks again
    get: state.exact ? exactly(state, stored, () => draw(state)) : stored,
    languageName: (code) => nameOfLanguage(language, code),

    /** An object of the reader's choices, by name: as it was for this record (or for `any` record) of this model and target language. */
    kept(name, first, any = false) {
      const mark = JSON.stringify([record.model, tagOf(record), any ? null : nameOf(record)]);
      if (state.kept.get(name)?.mark !== mark) state.kept.set(name, { mark, value: first });
      return state.kept.get(name).value;
    },

    /** The line that says how something of this name goes. It stays, as `kept` does, and speaks the language of the box. */
    status(name) {
      const line = glass.kept(`status ${name}`, make("p", { class: "quiet status", role: "status" }));
      tell(state, line, state.told.get(line)?.words);
      return line;
    },

    /** Begins something that says how it goes in the element `status`, by the words of `say`; none: it says nothing yet.
     * -> whether something newer has begun there */
    begin(status, ...words) {
      const turn = {};
      state.told.set(status, { turn });
      tell(state, status, words);
      return () => state.told.get(status).turn !== turn;
    },

    /** The live model's answer; null if it failed, after calling failed(problem), or if a newer request has been made
     * meanwhile. Where the box has been drawn again meanwhile, it is drawn once more, to show what the answer has changed. */
    async request(text, options, status, failed = () => {}) {
      const overtaken = glass.begin(status, "waiting");
      try {
        const answer = await state.inspect(text, options);
        if (overtaken()) return null;
        tell(state, status);
        if (state.glass !== glass && state.record === record) setTimeout(() => draw(state)); // the caller comes first
        return answer;
      } catch (problem) {
        if (overtaken()) return null;
        tell(state, status, ["failed", { problem: visible(problem.message) }]);
        failed(problem);
        return null;
      }
    },

    /** Shows the record of the live model's answer in place of this one. */
    async ask(text, options, status) {
      const question = ++state.questions;
      const answer = await glass.request(text, options, status);
      if (!answer || question !== state.questions) return;
      state.record = answer;
      state.asked.clear();
      draw(state);
      state.news.textContent = say("arrived", { text: visible(answer.target.text) });
      writeAddress(state);
    },

    /** Makes a token stand out wherever it is a row: of "source", or of the steps of the "target". */
    choose(side, row) {
      glass.chosen[side] = row;
      const showing = `[data-rows="${side}"]`;
      const elements = glass.parts().flatMap((part) => [part, ...part.querySelectorAll(showing)]);
      for (const one of elements) if (one.matches(showing)) one.dispatchEvent(new Event("chosen"));
    },
  };
  glass.chosen = glass.kept("chosen", { source: null, target: null });
  return glass;
}

/** Says something in an element, by the words of `say`, and notes it there; none: nothing. */
function tell(state, status, words = []) {
  state.told.set(status, { ...state.told.get(status), words });
  status.textContent = words.length ? speaker(state.language)(...words) : "";
}

/** The tabs, and the view that is open. */
function views(state, glass) {
  const { say } = glass;
  const names = Object.keys(VIEWS).filter((name) => name !== "training" || hasTraining(state.record));
  if (!names.includes(lastView)) lastView = names[0];
  const panel = make("div", { role: "tabpanel", id: "glass-view", tabindex: -1 });
  const made = new Map();
  const tabs = names.map((name) =>
    make("button", { type: "button", role: "tab", id: `glass-tab-${name}`, "aria-controls": "glass-view", click: () => show(name) }, say(`view_${name}`)),
  );
  const show = (name) => {
    if (glass.unanswered && name !== lastView) made.clear();
    glass.unanswered = false;
    lastView = name;
    if (!made.has(name)) made.set(name, [["translate", "machine"].includes(name) ? null : make("p", { class: "lead" }, termed(say, say(`lead_${name}`))), VIEWS[name](glass)].filter((part) => part));
    tabs.forEach((tab, at) => {
      tab.setAttribute("aria-selected", `${names[at] === name}`);
      tab.tabIndex = names[at] === name ? 0 : -1;
    });
    state.root.dataset.view = name;
    const { offsetLeft, offsetWidth, parentElement: row } = tabs[names.indexOf(name)];
    if (row) row.scrollLeft = offsetLeft - (row.clientWidth - offsetWidth) / 2;
    panel.setAttribute("aria-labelledby", `glass-tab-${name}`);
    panel.replaceChildren(...made.get(name));
  };
  glass.parts = () => [...made.values()].flat();
  glass.open = (name) => {
    made.delete(name);
    show(name);
    tabs[names.indexOf(name)].focus();
    writeAddress(state);
  };
  const move = (event) => {
    const at = names.indexOf(lastView);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: names.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const next = (to + names.length) % names.length;
    show(names[next]);
    tabs[next].focus();
  };
  show(lastView);
  return [make("div", { role: "tablist", "aria-label": say("viewsLabel"), keydown: move }, tabs), panel];
}
