// Why this token, and not that one.

import { barRow } from "./bars.js";
import { askingForm, make } from "./elements.js";
import { decimal, matrixOf, rowOf } from "./numbers.js";
import { chip, phrase } from "./phrases.js";
import { loosePiece, pieceTexts } from "./tokens.js";

export function contrastPart(glass, analyses) {
  const { record, say } = glass;
  const { fields, array } = analyses.found("contrast");
  const step = glass.chosen.target ?? 0;
  const own = rowOf(matrixOf(array("erasure")), step);
  const limit = Math.max(...own.map(Math.abs), 0.5);
  const rows = pieceTexts(record.source.tokens).map((name, place) => barRow(name, decimal(own[place]), Math.abs(own[place]) / limit, { look: own[place] < 0 ? "against" : null }));
  const token = chip(pieceTexts(record.target.tokens)[step]);
  const foil = chip(loosePiece(fields.foils[step].piece));
  return [
    make("p", { class: "saying" }, phrase(say, "ratherThan", { token, foil, nats: decimal(fields.difference[step]) })),
    make("ol", { class: "bars signed" }, rows),
  ];
}

/** A translation that the reader would have expected. */
export function contrastForm(glass, ask, analyses) {
  const { record, say } = glass;
  const typed = glass.kept("instead", { text: record.alternatives[0]?.text ?? record.target.text });
  const foils = () => analyses.found("contrast")?.fields.foils.map(({ id }) => id) ?? [];
  const submit = async () => {
    const before = foils();
    await ask({ kind: "contrast", instead: typed.text });
    const step = foils().findIndex((id, at) => id !== before[at]);
    if (step >= 0) glass.choose("target", step);
  };
  return askingForm(typed, "glass-instead", say("insteadLabel"), say("compare"), submit);
}
