// The sentence, its translation, what each word looked at, and what else the search considered.

import { analysesOf } from "./analysed.js";
import { sourceAsItWas } from "./asking.js";
import { meanShare } from "./confidence.js";
import { make } from "./elements.js";
import { lookingPicture } from "./looking.js";
import { decimal, percent, probability } from "./numbers.js";
import { termed } from "./terms.js";
import { visible } from "./tokens.js";
import { winner } from "./tree.js";

const UNLIKELY = 1 / 3; // on average; of Multi30K's test set its models give 1 translation of 20 less than 0.36
const LONGEST_ANALYSED = 40; // tokens: a server analyses no more

export function translateView(glass) {
  const { record, say } = glass;
  return make(
    "div",
    { class: "view" },
    glass.inspect ? sentenceForm(glass) : null,
    lookingPicture(glass),
    warning(glass),
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

/** Says so where a translation is unlikely, and where it may have little to do with its source: that as soon as it is known. */
function warning(glass) {
  const { record, say } = glass;
  const analyses = analysesOf(glass);
  const line = make("p", { class: "warned", role: "status" });
  const show = () => {
    const share = meanShare(record);
    const told = [share !== null && share < UNLIKELY ? say("unlikely", { share: percent(share) }) : "", analyses.found("erasure")?.fields.detached ? say("unheeded") : ""];
    line.textContent = told.join(" ").trim();
    line.hidden = !line.textContent;
  };
  show();
  const asks = !analyses.found("erasure") && analyses.computes("erasure") && record.source.tokens.length <= LONGEST_ANALYSED;
  if (asks) analyses.ask(["erasure"], make("p", {})).then((worked) => worked && show());
  return line;
}

function sentenceForm(glass) {
  const { record, say, ask, kept, examples } = glass;
  const typed = kept("sentence", { text: null }, true);
  const text = make("textarea", { id: "glass-sentence", rows: 1, dir: "auto", input: () => (typed.text = text.value) });
  text.value = typed.text ?? sourceAsItWas(record);
  const status = glass.status("sentence");
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
          glass.begin(status, "emptySentence");
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
  const won = record.beam && winner(record.beam);
  return [
    make("p", { class: "quiet" }, say("alternativesText"), won ? ` ${say("translationRanked", { ranking: decimal(won.ranking) })}` : ""),
    make("ol", { class: "alternatives" }, items),
  ];
}
