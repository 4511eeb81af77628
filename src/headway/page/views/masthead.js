// The head of the box: the sentence, and what is there beside the views: the tour, presenter mode, theme, language.

import { isDark } from "./colours.js";
import { closeOnEscape, make } from "./elements.js";
import { canBeExact } from "./exact.js";
import { pictureButton } from "./save_picture.js";
import { brief, languageOf, visible } from "./tokens.js";
import { canTour } from "./tour.js";
import { editedLine } from "./what_if.js";
import { languages, speaker } from "./words.js";

const LONGEST = 72; // of each text, so that both stand in one line

/** turn: {draw(), tourTo(stop)}, which change the box. */
export function masthead(state, glass, turn) {
  const { record, say } = glass;
  return make(
    "header",
    { class: "glass-head" },
    make("div", { class: "names" }, make(state.address === true ? "h1" : "p", { class: "over" }, say("title")), make("h2", {}, say("question"))),
    make("div", { class: "tools" }, tools(state, glass, turn)),
    purpose(glass),
    make(
      "p",
      { class: "sentence-line" },
      make("bdi", {}, brief(visible(record.source.text), LONGEST)),
      make("span", { class: "arrow", "aria-hidden": "true" }, " → "),
      make("bdi", {}, make("b", {}, brief(visible(record.target.text), LONGEST))),
    ),
    record.edits.length ? editedLine(glass) : null,
  );
}

/** The languages of the model and, if that is known, the subject of its training text. */
function purpose({ record, say, languageName }) {
  const [source, target] = ["source", "target"].map((side) => languageName(languageOf(record, side)));
  const parts = [source && target ? say("purpose", { source, target }) : null, record.model.domain ? say("domain", { domain: visible(record.model.domain) }) : null];
  return make("p", { class: "purpose quiet" }, parts.filter((part) => part).join(" "));
}

/** The tour, presenter mode, the theme, what this is, and the language where the page around doesn't choose it. */
function tools(state, glass, { draw, tourTo }) {
  const { say } = glass;
  const button = (name, pressed, act) => make("button", { type: "button", class: `tool-${name}`, "aria-pressed": pressed === null ? null : `${pressed}`, click: act }, say(name));
  const present = () => {
    state.presenting = !state.presenting;
    draw();
  };
  const exact = () => {
    state.exact = !state.exact;
    draw();
  };
  const dark = isDark(state.theme);
  const theme = () => {
    state.theme = dark ? "light" : "dark";
    draw();
  };
  return [
    canTour(state.record) ? button("tour", Boolean(state.tour), () => tourTo(state.tour ? null : 0)) : null,
    state.exact || canBeExact(state) ? button("exact", state.exact, exact) : null,
    button("present", state.presenting, present),
    make("button", { type: "button", class: "tool-theme", "aria-label": say("theme"), title: say("theme"), click: theme }, dark ? "☀" : "☾"),
    pictureButton(state, glass, draw),
    aboutButton(glass),
    state.inspect && !state.turn ? null : languageSwitch(state, draw),
  ];
}

/** Explains the page, behind an (i). */
function aboutButton(glass) {
  const { say } = glass;
  const details = make("details", { class: "about" }, make("summary", { "aria-label": say("aboutLabel"), title: say("aboutLabel") }, "i"), make("p", { class: "lead" }, about(glass)));
  closeOnEscape(details);
  return details;
}

function languageSwitch(state, draw) {
  const other = languages.find((one) => one !== state.language);
  const change = () => {
    state.language = other;
    draw();
  };
  return make("button", { type: "button", class: "language", lang: other, click: state.turn ?? change }, speaker(other)("ownName"));
}

function about({ record, say, languageName }) {
  const { config } = record.model;
  const [source, target] = [languageOf(record, "source"), languageOf(record, "target")];
  const same = config.num_heads === config.decoder_num_heads;
  const name = record.target.given ? "aboutGiven" : source && target ? "about" : "aboutPlain";
  return say(name, {
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

/** The name of a language in another. XX, as in mBART's en_XX, is no region. */
export function nameOfLanguage(language, code) {
  if (!code) return "";
  try {
    return new Intl.DisplayNames([language], { type: "language" }).of(code.replace(/-XX$/, ""));
  } catch {
    return visible(code);
  }
}
