// The first picture: the source above, the translation below, and lines from what each word looked at. It plays once.

import { lookedAt, wordConfidence } from "./confidence.js";
import { make, makeSvg } from "./elements.js";
import { percent, probability } from "./numbers.js";
import { chip, phrase, withShares } from "./phrases.js";
import { playerOf } from "./player.js";
import { brief, languageOf, loosePiece } from "./tokens.js";
import { drawLines, lettersOf } from "./word_lines.js";

const LEAST_LINE = 0.04;
const LEAST_OF_LARGEST = 0.5;
const RESTS = 0.3; // of <eos>: from here on it is spoken of
const NAMED = 3;
const WHOLE = 9000; // milliseconds that it plays, at most PAUSE a word
const PAUSE = 850;

/** The picture with its sentence; what it shows is {side, number} of a word, or all words at once. */
export function lookingPicture(glass) {
  const { record, say } = glass;
  const seen = lookedAt(glass);
  const state = glass.kept("looking", { played: false });
  const lines = makeSvg("svg", { class: "threads", "aria-hidden": "true" });
  const sentence = make("div", { class: "detail", "aria-live": "polite" });
  const words = {};
  const resting = tellingWord(seen);
  const last = seen.target.length; // where all words have been shown
  let [shown, at] = [null, last];

  const look = (now, grows = false) => {
    shown = now;
    const share = (side, at) => (now && seen.share && side !== now.side ? shareOf(seen, now, at) : 0);
    for (const side of ["source", "target"]) {
      words[side].forEach((word, at) => {
        word.classList.toggle("chosen", now?.side === side && now.number === at);
        word.style.setProperty("--share", share(side, at).toFixed(3));
      });
    }
    drawLines(lines, now ? linesOfWord(seen, words, now) : [], grows);
    const told = now === null ? [] : now.side === "target" ? ofTarget(glass, seen, now.number) : ofSource(glass, seen, now.number);
    sentence.replaceChildren(...(now === resting ? [...told.slice(0, 1), make("p", { class: "quiet hint" }, say("pairHint"))] : grows ? told.slice(0, 1) : told));
  };
  const go = (to) => {
    at = to;
    words.target[at]?.classList.remove("later");
    words.target[at]?.classList.add("arriving");
    if (at === last) look(resting);
    else look({ side: "target", number: at }, true);
  };
  const told = (playing) => {
    sentence.setAttribute("aria-live", playing ? "off" : "polite");
    if (playing && at === last) at = -1;
    words.target.forEach((word, number) => word.classList.toggle("later", playing && number > at));
  };
  const { play, halt, start } = playerOf(say, { last, now: () => at, go, pause: () => Math.min(PAUSE, WHOLE / last), told });
  play.className = "play";
  for (const side of ["source", "target"]) {
    const choose = (number) => () => {
      halt();
      look({ side, number });
    };
    words[side] = seen[side].map((word, number) => wordButton(record, side, word, choose(number)));
  }
  const letters = Math.max(lettersOf(seen.source), lettersOf(seen.target)).toFixed(1);
  const rows = ["source", "target"].map((side) => wordRow(glass, side, words[side]));
  const box = make("div", { class: "pair", "--letters": letters }, lines, rows);
  const first = !state.played && !window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  if (first) told(true);
  new ResizeObserver(() => {
    if (state.played || !first) return look(shown ?? resting);
    state.played = true;
    start();
  }).observe(box);
  return make("section", { class: "looking" }, box, make("div", { class: "told" }, play, sentence));
}

function wordButton(record, side, word, look) {
  return make(
    "button",
    { type: "button", class: word.control ? "word control" : "word", pointerenter: look, focus: look },
    make("bdi", {}, brief(word.text, 40)),
    side === "target" ? confidenceMark(wordConfidence(record, word)) : null,
  );
}

function wordRow({ record, say, languageName }, side, buttons) {
  const language = languageOf(record, side);
  return make(
    "div",
    { class: `words ${side}` },
    make("h3", {}, languageName(language) || say(side)),
    make("p", { class: "text", dir: "auto", lang: language || null }, buttons),
  );
}

function confidenceMark(confidence) {
  const share = (confidence ?? 0).toFixed(3);
  return make("span", { class: "confidence", "--share": share }, make("span", { class: "bar" }), percent(confidence));
}

/** The share between a word and another of the other side. */
function shareOf({ share }, { side, number }, at) {
  return side === "target" ? share(number, at) : share(at, number);
}

function linesOfWord(seen, words, now) {
  if (!seen.share) return [];
  const other = now.side === "target" ? "source" : "target";
  const shares = seen[other].map((_, at) => shareOf(seen, now, at));
  const least = Math.min(LEAST_LINE, LEAST_OF_LARGEST * Math.max(...shares));
  return shares.flatMap((share, at) => {
    if (share < least) return [];
    const [from, to] = now.side === "target" ? [at, now.number] : [now.number, at];
    return { from: words.source[from], to: words.target[to], share, look: from === seen.source.length - 1 ? "rests" : "" };
  });
}

/** The word of the translation that looks most at a single word of the source, to be shown first; null where there is none. */
function tellingWord({ source, target, share }) {
  const most = (number) => Math.max(0, ...source.map(({ control }, at) => (share && !control ? share(number, at) : 0)));
  const numbers = target.flatMap(({ control }, number) => (control ? [] : [number]));
  return numbers.length ? { side: "target", number: numbers.reduce((best, one) => (most(one) > most(best) ? one : best)) } : null;
}

/** Text about a word of the translation: its attention, and the alternatives to it. */
function ofTarget({ record, say }, seen, number) {
  const word = seen.target[number];
  const [first] = word.places;
  const { top, log_probability: logarithm } = record.steps[first];
  const others = top.filter((one) => one.id !== record.target.tokens[first].id).slice(0, NAMED);
  const token = [chip(loosePiece(record.target.tokens[first].piece)), ` ${percent(probability(logarithm))}`];
  const name = word.places.length > 1 ? "firstCouldHaveBeen" : "couldHaveBeen";
  return [
    seen.share ? make("p", { class: "saying" }, toWrite(say, seen, number)) : null,
    make(
      "p",
      { class: "quiet others" },
      phrase(say, "confidenceOf", { share: percent(wordConfidence(record, word)) }),
      " ",
      phrase(say, name, { token, others: withShares(others.map((one) => [loosePiece(one.piece), one.probability])) }),
    ),
  ].filter((line) => line);
}

/** "To write 25일 it looked at 25," as a sentence; attention that rests on the end symbol is said apart. */
function toWrite(say, { source, target, share }, number) {
  const shares = source.map((one, at) => [one.text, share(number, at), one.control]).toSorted((one, other) => other[1] - one[1]);
  const words = shares.filter(([, , control]) => !control);
  const most = words.filter(([, part]) => part >= Math.max(LEAST_LINE, LEAST_OF_LARGEST * words[0]?.[1])).slice(0, NAMED);
  const rest = shares.find(([, part, control]) => control && part >= RESTS);
  const written = chip(target[number].text, "written");
  return [
    ...phrase(say, "toWrite", { word: written, words: withShares(most.length ? most : words.slice(0, 1)) }),
    ...(rest ? [" ", make("span", { class: "quiet" }, phrase(say, "restsThere", { share: percent(rest[1]), token: chip(rest[0]) }))] : []),
  ];
}

function ofSource({ say }, { source, target, share }, number) {
  const word = chip(source[number].text);
  if (!share) return [make("p", { class: "saying" }, phrase(say, "ofTheSource", { word }))];
  const shares = target.map((one, at) => [one.text, share(at, number)]).toSorted((one, other) => other[1] - one[1]);
  const about = number === source.length - 1 ? make("p", { class: "quiet others" }, say("whyItRests")) : null;
  return [make("p", { class: "saying" }, phrase(say, "lookedAtBy", { word, words: withShares(shares.slice(0, NAMED)) })), about].filter((line) => line);
}
