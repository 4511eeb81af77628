// The first view: the sentence, its translation, how sure of each word, and what each word looked at.

import { lookedAt, wordConfidence } from "./confidence.js";
import { make, makeSvg } from "./elements.js";
import { decimal, percent, probability } from "./numbers.js";
import { brief, languageOf, loosePiece, visible } from "./tokens.js";

const LEAST_THREAD = 0.04;
const LEAST_OF_LARGEST = 0.5;
const NAMED = 3;

export function translateView(glass) {
  const { record, say } = glass;
  return make(
    "div",
    { class: "view" },
    glass.inspect ? sentenceForm(glass) : null,
    pair(glass),
    make(
      "div",
      { class: "two" },
      make(
        "section",
        {},
        make("h3", {}, say("totalTitle")),
        make("p", { class: "figure-number" }, percent(probability(record.target.score))),
        make("p", { class: "quiet" }, say("totalText", { score: decimal(record.target.score) })),
      ),
      make("section", {}, make("h3", {}, say("alternativesTitle")), alternatives(glass)),
    ),
    glass.inspect ? null : make("p", { class: "quiet" }, say("standAlone")),
  );
}

function sentenceForm({ record, say, ask, kept }) {
  const typed = kept("sentence", { text: null }, true);
  const text = make("textarea", { id: "glass-sentence", rows: 2, dir: "auto", input: () => (typed.text = text.value) });
  text.value = typed.text ?? record.source.original ?? record.source.text;
  const status = make("p", { class: "quiet status", role: "status" });
  const form = make(
    "form",
    {
      class: "sentence",
      submit: (event) => {
        event.preventDefault();
        if (text.value.trim()) ask(text.value, {}, status);
      },
    },
    make("label", { for: "glass-sentence" }, say("sentence")),
    make("div", { class: "row" }, text, make("button", { type: "submit", class: "primary", id: "glass-translate" }, say("translate"))),
    status,
  );
  text.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    form.requestSubmit();
  });
  return form;
}

function pair(glass) {
  const { record, say } = glass;
  const seen = lookedAt(record, glass.get);
  const threads = makeSvg("svg", { class: "threads", "aria-hidden": "true" });
  const detail = make("div", { class: "detail", "aria-live": "polite" });
  const buttons = { source: [], target: [] };
  const look = (side, number) => {
    for (const name of ["source", "target"]) {
      buttons[name].forEach((button, at) => {
        const own = name === side && at === number;
        const share = name === side || !seen.share ? 0 : side === "target" ? seen.share(number, at) : seen.share(at, number);
        button.classList.toggle("chosen", own);
        button.style.setProperty("--share", share.toFixed(3));
      });
    }
    detail.replaceChildren(...(side === "target" ? targetDetail(glass, seen, number) : sourceDetail(glass, seen, number)));
    drawThreads(threads, buttons, seen, side, number);
  };
  for (const side of ["source", "target"]) {
    buttons[side] = seen[side].map((word, number) =>
      make(
        "button",
        {
          type: "button",
          class: word.control ? "word control" : "word",
          pointerenter: () => look(side, number),
          focus: () => look(side, number),
        },
        make("bdi", {}, brief(word.text, 40)),
        side === "target" ? confidenceMark(wordConfidence(record, word)) : null,
      ),
    );
    if (glass.arriving && side === "target") {
      buttons[side].forEach((button, number) => {
        button.classList.add("arriving");
        button.style.setProperty("--order", number);
      });
    }
  }
  const box = make(
    "div",
    { class: "pair" },
    threads,
    wordRow(glass, "source", buttons.source),
    wordRow(glass, "target", buttons.target),
  );
  const first = Math.max(0, Math.floor((seen.target.length - 1) / 2));
  new ResizeObserver(() => {
    const chosen = buttons.target.findIndex((button) => button.classList.contains("chosen"));
    const other = buttons.source.findIndex((button) => button.classList.contains("chosen"));
    if (other >= 0) look("source", other);
    else if (buttons.target.length) look("target", chosen >= 0 ? chosen : first);
  }).observe(box);
  return make("section", {}, box, detail, make("p", { class: "quiet" }, say("pairHint")));
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
  const mark = make("span", { class: "confidence" }, make("span", { class: "bar" }), percent(confidence));
  mark.style.setProperty("--share", (confidence ?? 0).toFixed(3));
  return mark;
}

function targetDetail({ record, say }, { source, target, share }, number) {
  const word = target[number];
  const [first] = word.places;
  const { top, log_probability: logarithm } = record.steps[first];
  const others = top.filter((one) => one.id !== record.target.tokens[first].id);
  const piece = { token: brief(loosePiece(record.target.tokens[first].piece), 24), share: percent(probability(logarithm)) };
  const shares = share ? source.map((one, at) => [one.text, share(number, at)]) : [];
  return [
    make("p", {}, make("b", {}, make("bdi", {}, brief(word.text, 40))), " ", say("confidenceOf", { share: percent(wordConfidence(record, word)) })),
    shares.length ? named(say("lookedMostAt"), shares) : null,
    named(say(word.places.length > 1 ? "firstCouldHaveBeen" : "couldHaveBeen", piece), others.map((one) => [loosePiece(one.piece), one.probability])),
  ].filter((line) => line);
}

function sourceDetail({ say }, { source, target, share }, number) {
  const heading = make("p", {}, make("b", {}, make("bdi", {}, brief(source[number].text, 40))), " ", say("ofTheSource"));
  return share ? [heading, named(say("lookedAtBy"), target.map((one, at) => [one.text, share(at, number)]))] : [heading];
}

/** A line: what it is, and the few largest with their shares. */
function named(title, shares) {
  const largest = shares.toSorted((one, other) => other[1] - one[1]).slice(0, NAMED);
  return make(
    "p",
    {},
    make("span", { class: "quiet" }, title),
    largest.map(([text, share]) => make("span", { class: "named" }, make("bdi", {}, brief(text, 24)), ` ${percent(share)}`)),
  );
}

function alternatives({ record, say }) {
  if (!record.alternatives.length) return make("p", { class: "quiet" }, say(record.beam ? "noAlternatives" : "noneRecorded"));
  const items = record.alternatives.map(({ text, score }) => {
    const found = record.beam?.finished?.find((one) => one.text === text && one.score === score);
    const numbers = [percent(probability(score)), found ? say("rankedBy", { ranking: decimal(found.ranking) }) : null];
    return make("li", {}, make("bdi", {}, visible(text)), make("span", { class: "number" }, numbers.filter((one) => one).join(" · ")));
  });
  const won = record.beam?.finished?.find(({ step, number }) => step === record.beam.result?.[0] && number === record.beam.result[1]);
  return [
    make("p", { class: "quiet" }, say("alternativesText"), won ? ` ${say("translationRanked", { ranking: decimal(won.ranking) })}` : ""),
    make("ol", { class: "alternatives" }, items),
  ];
}

function drawThreads(svg, buttons, { share }, side, number) {
  svg.replaceChildren();
  if (!share) return;
  const frame = svg.getBoundingClientRect();
  const other = side === "target" ? "source" : "target";
  const middle = (button, end) => {
    const box = button.getBoundingClientRect();
    return [box.left + box.width / 2 - frame.left, (end === "source" ? box.bottom : box.top) - frame.top];
  };
  const [x, y] = middle(buttons[side][number], side);
  const weightOf = (at) => (side === "target" ? share(number, at) : share(at, number));
  const least = Math.min(LEAST_THREAD, LEAST_OF_LARGEST * Math.max(...buttons[other].map((_, at) => weightOf(at))));
  svg.append(
    ...buttons[other].flatMap((button, at) => {
      const weight = weightOf(at);
      if (weight < least) return [];
      const [toX, toY] = middle(button, other);
      const half = (y + toY) / 2;
      const width = 1 + 9 * weight;
      return makeSvg("path", { d: `M${x} ${y}C${x} ${half} ${toX} ${half} ${toX} ${toY}`, "stroke-width": width.toFixed(1) });
    }),
  );
}
