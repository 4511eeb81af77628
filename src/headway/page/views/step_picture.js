// One step of the translation: the source with what the step looks at, the target so far with its self-attention, and
// what comes later greyed.

import { meanAttention } from "./attention_of_head.js";
import { make, makeSvg } from "./elements.js";
import { chip, phrase, withShares } from "./phrases.js";
import { brief, pieceTexts, readTexts } from "./tokens.js";
import { drawArcs, drawLines, lettersOf } from "./word_lines.js";

const LEAST = 0.03;
const NAMED = 2;

/** now() -> the step that is shown. -> {element, draw} */
export function stepPicture(glass, now) {
  const { record, say } = glass;
  const lines = makeSvg("svg", { class: "threads", "aria-hidden": "true" });
  const written = pieceTexts(record.target.tokens);
  const source = pieceTexts(record.source.tokens).map((text) => token(text));
  const target = [readTexts(record)[0], ...written].map((text) => token(text));
  const sentence = make("p", { class: "saying", "aria-live": "polite" });
  const [cross, self] = ["cross", "decoder"].map((kind) => meanAttention(glass, kind));
  const letters = [source, target].map((row) => lettersOf(row.map(({ textContent }) => ({ text: textContent }))));
  const rows = make(
    "div",
    { class: "pair step", "--letters": Math.max(...letters).toFixed(1) },
    lines,
    make("div", { class: "words source" }, make("h3", {}, say("stepSource")), make("p", { class: "text", dir: "auto" }, source)),
    make("div", { class: "words target" }, make("h3", {}, say("stepTarget")), make("p", { class: "text growing", dir: "auto" }, target)),
  );
  const share = (matrix, column) => (matrix ? matrix.values[now() * matrix.columns + column] : 0);
  const draw = () => {
    const step = now();
    target.forEach((one, place) => {
      for (const look of ["done", "next", "later"]) one.classList.toggle(look, look === (place <= step ? "done" : place === step + 1 ? "next" : "later"));
      one.style.setProperty("--share", (place <= step ? share(self, place) : 0).toFixed(3));
    });
    source.forEach((one, place) => one.style.setProperty("--share", share(cross, place).toFixed(3)));
    sentence.replaceChildren(...told(glass, written[step], source, cross ? source.map((_, place) => share(cross, place)) : [], self ? target.slice(0, step + 1).map((one, place) => [one.textContent, share(self, place)]) : []));
    if (!rows.clientWidth) return;
    const to = target[step + 1];
    drawLines(lines, source.flatMap((from, place) => (share(cross, place) < LEAST ? [] : { from, to, share: share(cross, place), look: place === source.length - 1 ? "rests" : "" })));
    drawArcs(lines, target.slice(0, step + 1).flatMap((one, place) => (share(self, place) < LEAST ? [] : { from: to, to: one, share: share(self, place) })));
  };
  new ResizeObserver(draw).observe(rows);
  return { element: make("div", { class: "looking step-looking" }, rows, make("div", { class: "told" }, sentence)), draw };
}

const token = (text) => make("bdi", { class: "token" }, brief(text, 24));

/** Text about the step's attention on either side. */
function told({ say }, text, source, cross, self) {
  const most = (shares) => shares.toSorted((one, other) => other[1] - one[1]).slice(0, NAMED);
  const parts = [];
  if (cross.length) parts.push(...phrase(say, "stepLooked", { token: chip(text, "written"), words: withShares(most(source.map((one, at) => [one.textContent, cross[at]]))) }));
  if (self.length) parts.push(" ", ...phrase(say, "stepReread", { words: withShares(most(self)) }));
  return parts;
}
