// The glass box: one translation of one model, seen in six views.

import { make } from "./elements.js";
import { headsView } from "./heads.js";
import { machineView } from "./machine.js";
import { openNumbers } from "./numbers.js";
import { stepsView } from "./steps.js";
import { brief, visible } from "./tokens.js";
import { translateView } from "./translate.js";
import { tryNumbersView } from "./try_numbers.js";
import { whatIfView } from "./what_if.js";
import { languages, speaker } from "./words.js";

const VIEWS = {
  translate: translateView,
  machine: machineView,
  heads: headsView,
  steps: stepsView,
  whatIf: whatIfView,
  numbers: tryNumbersView,
};
const LONGEST = 160;
const mounted = new WeakMap();
let lastView = "translate";

/**
 * Fills `element`. record: as docs/record.md has it; language: "en" or "ko"; inspect(text, options): async, gives a record
 * of the live model, or is absent, and then the reader chooses the language here.
 */
export function mountBox(element, { record, inspect = null, language = "en" }) {
  mounted.get(element)?.abort();
  const leaving = new AbortController();
  mounted.set(element, leaving);
  const state = { record, language: languages.includes(language) ? language : "en", arriving: false };
  const show = () => element.replaceChildren(box(state, inspect, show));
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", show, { signal: leaving.signal });
  show();
}

function box(state, inspect, show) {
  const { record, language } = state;
  const say = speaker(language);
  const request = async (text, options, status) => {
    status.textContent = say("waiting");
    try {
      const answer = await inspect(text, options);
      status.textContent = "";
      return answer;
    } catch (problem) {
      status.textContent = say("failed", { problem: visible(problem.message) });
      return null;
    }
  };
  const ask = async (text, options, status) => {
    const answer = await request(text, options, status);
    if (!answer) return;
    Object.assign(state, { record: answer, arriving: true });
    show();
  };
  const glass = {
    record,
    inspect,
    request,
    ask,
    say,
    get: openNumbers(record),
    languageName: (code) => nameOfLanguage(language, code),
    arriving: state.arriving,
  };
  state.arriving = false;
  return make(
    "div",
    { class: "glass", lang: language },
    make(
      "header",
      { class: "glass-head" },
      make("div", {}, make("p", { class: "over" }, say("title")), make("h2", {}, say("question"))),
      inspect ? null : languageSwitch(state, show),
      make("p", { class: "lead" }, about(glass)),
      make(
        "p",
        { class: "sentence-line" },
        make("bdi", {}, brief(visible(record.source.text), LONGEST)),
        make("span", { class: "arrow", "aria-hidden": "true" }, " → "),
        make("bdi", {}, make("b", {}, brief(visible(record.target.text), LONGEST))),
      ),
      record.edits.length ? make("p", { class: "edited" }, say("editedTitle")) : null,
    ),
    views(glass),
  );
}

function languageSwitch(state, show) {
  const other = languages.find((one) => one !== state.language);
  const change = () => {
    state.language = other;
    show();
  };
  return make("button", { type: "button", class: "language", lang: other, click: change }, speaker(other)("ownName"));
}

/** What the reader is looking at. */
function about({ record, say, languageName }) {
  const { config, source_language: source, target_language: target } = record.model;
  const same = config.num_heads === config.decoder_num_heads;
  return say(source && target ? "about" : "aboutPlain", {
    encoder: config.encoder_layers,
    decoder: config.decoder_layers,
    heads: same ? config.num_heads : `${config.num_heads} + ${config.decoder_num_heads}`,
    d_model: config.d_model,
    read: record.source.tokens.length,
    written: record.target.tokens.length,
    source: languageName(source),
    target: languageName(target),
  });
}

function views(glass) {
  const { say } = glass;
  const names = Object.keys(VIEWS);
  const panel = make("div", { role: "tabpanel", id: "glass-view", tabindex: -1 });
  const made = new Map();
  const tabs = names.map((name) =>
    make("button", { type: "button", role: "tab", id: `glass-tab-${name}`, "aria-controls": "glass-view", click: () => open(name) }, say(`view_${name}`)),
  );
  const open = (name) => {
    lastView = name;
    if (!made.has(name)) made.set(name, [make("p", { class: "lead" }, say(`lead_${name}`)), VIEWS[name](glass)]);
    tabs.forEach((tab, at) => {
      tab.setAttribute("aria-selected", `${names[at] === name}`);
      tab.tabIndex = names[at] === name ? 0 : -1;
    });
    panel.setAttribute("aria-labelledby", `glass-tab-${name}`);
    panel.replaceChildren(...made.get(name));
  };
  const list = make(
    "div",
    {
      role: "tablist",
      "aria-label": say("viewsLabel"),
      keydown: (event) => {
        const at = names.indexOf(lastView);
        const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: names.length - 1 }[event.key];
        if (to === undefined) return;
        event.preventDefault();
        const next = (to + names.length) % names.length;
        open(names[next]);
        tabs[next].focus();
        tabs[next].scrollIntoView({ block: "nearest", inline: "nearest" });
      },
    },
    tabs,
  );
  open(lastView);
  return [list, panel];
}

function nameOfLanguage(language, code) {
  if (!code) return "";
  try {
    return new Intl.DisplayNames([language], { type: "language" }).of(code);
  } catch {
    return visible(code);
  }
}
