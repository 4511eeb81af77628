// The languages of the loaded models, and sentences to try them with.

import { languageName, say } from "./words.js";

/** The models that translate from a language, or from any (`auto`), into another. */
export function modelsFor(models, source, target) {
  return models.filter((one) => one.target === target && ["auto", one.source].includes(source));
}

/** The analyses that the server can compute of a record into a language. Of a model with many source languages the
 * server describes the directions from its own. */
export function analysesFor(models, { model }, target) {
  const own = models.filter((one) => one.source === model.source_language);
  return (own.find((one) => one.target === target) ?? own[0])?.analyses ?? [];
}

/** Whether the server looks inside them. Where it has no torch, it computes no analysis. */
export function areInspected(models) {
  return models.some((one) => one.analyses.length);
}

/** In a line: what its text was about, its languages and its size. names: of the languages, by code. */
export function modelLine({ domain, source, target, parameters }, language, names) {
  const [from, into] = [source, target].map((code) => languageName(language, code, names[code]));
  const count = new Intl.NumberFormat(language, { notation: "compact", maximumSignificantDigits: 2 }).format(parameters);
  const line = say(language, "modelLine", { from, into, count });
  return domain ? `${domain}, ${line}` : line;
}

/** A button for each example; try_(text, model): what it does. */
export function exampleButtons(models, try_) {
  return models.flatMap((model) =>
    model.examples.map(({ source: text }) => {
      const button = document.createElement("button");
      Object.assign(button, { type: "button", textContent: text, dir: "auto", lang: model.source });
      button.addEventListener("click", () => try_(text, model));
      return button;
    }),
  );
}
