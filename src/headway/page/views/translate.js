// The first view: the sentence, its translation, what each word looked at, and what else the search considered.

import { make } from "./elements.js";
import { lookingPicture } from "./looking.js";
import { decimal, percent, probability } from "./numbers.js";
import { termed } from "./terms.js";
import { visible } from "./tokens.js";

export function translateView(glass) {
  const { record, say } = glass;
  return make(
    "div",
    { class: "view" },
    glass.inspect ? sentenceForm(glass) : null,
    lookingPicture(glass),
    make("p", { class: "lead quiet" }, termed(say, say("lead_translate"))),
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

function sentenceForm({ record, say, ask, kept, examples }) {
  const typed = kept("sentence", { text: null }, true);
  const text = make("textarea", { id: "glass-sentence", rows: 1, dir: "auto", input: () => (typed.text = text.value) });
  text.value = typed.text ?? record.source.original ?? record.source.text;
  const status = make("p", { class: "quiet status", role: "status" });
  const example = (sentence) => {
    const take = () => {
      text.value = typed.text = sentence;
      form.requestSubmit();
    };
    return make("button", { type: "button", dir: "auto", click: take }, visible(sentence));
  };
  const form = make(
    "form",
    {
      class: "sentence",
      submit: (event) => {
        event.preventDefault();
        if (text.value.trim()) ask(text.value, {}, status);
        else {
          status.textContent = say("emptySentence");
          text.focus();
        }
      },
    },
    make("label", { for: "glass-sentence", class: "unseen" }, say("sentence")),
    make("div", { class: "row" }, text, make("button", { type: "submit", class: "primary", id: "glass-translate" }, say("translate"))),
    examples.length ? make("p", { class: "examples" }, make("span", { class: "quiet" }, say("examples")), examples.map(example)) : null,
    status,
  );
  text.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    form.requestSubmit();
  });
  return form;
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
