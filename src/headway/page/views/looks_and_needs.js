// Compares a token's attention, its contributions and its needs side by side, and explains when they differ.

import { meanAttention } from "./attention_of_head.js";
import { largest } from "./colours.js";
import { make } from "./elements.js";
import { matrixPicture } from "./matrix.js";
import { matrixOf, percent, rowOf } from "./numbers.js";
import { chip, listed, phrase } from "./phrases.js";
import { pieceTexts } from "./tokens.js";

const LEAST = 0.001; // of a share below 0, to be shown as such

export function needsPart(glass, analyses) {
  const { record, say } = glass;
  const { needs } = analyses.found("erasure").fields;
  const columns = columnsOf(glass, analyses);
  const step = glass.chosen.target ?? 0;
  const looks = record.target.tokens.map((_, row) => most(columns[0], row));
  const tally = { same: 0, other: 0, none: 0, count: needs.length };
  needs.forEach((need, row) => (tally[need === null ? "none" : neededBy(columns, row, need, looks[row]).includes(looks[row]) ? "same" : "other"] += 1));
  return [
    make("p", { class: "saying", "aria-live": "polite" }, verdict(glass, columns, step, looks[step], needs[step])),
    comparison(glass, columns, step),
    make("h4", {}, say("differTitle")),
    make("p", {}, say("differCount", tally)),
    make("ol", { class: "differ" }, ["differNothing", "differOther", "differTwice"].map((name) => make("li", {}, say(name)))),
  ];
}

/** The same for all tokens at once. */
export function mapsPart(glass, analyses) {
  return [make("div", { class: "maps" }, columnsOf(glass, analyses).map((column) => mapOf(glass, column)))];
}

/** {name, matrix, share(value): of 0 to 1}: attention where the record has it, contributions where they are known, erasure. */
function columnsOf(glass, analyses) {
  const mean = meanAttention(glass, "cross");
  const contributions = analyses.found("contributions");
  const effect = matrixOf(analyses.found("erasure").array("effect"));
  return [
    mean && { name: "looks", matrix: mean },
    contributions ? { name: "comes", matrix: matrixOf(contributions.array("source")) } : null,
    { name: "loses", matrix: { ...effect, values: effect.values.map((nats) => 1 - Math.exp(-nats)), step: undefined } },
  ].filter((column) => column);
}

function most({ matrix }, row) {
  const own = rowOf(matrix, row);
  return own.indexOf(Math.max(...own));
}

/** The tokens of the source that a step needs most, in the order of the source: as the shares that are shown tell them
 * apart, `need` among them, or the one that it looks at where that is needed more. */
function neededBy(columns, step, need, look) {
  const losses = lossesOf(columns, step);
  const most = losses[look] > losses[need] ? look : need;
  return losses.flatMap((loss, place) => (percent(loss) === percent(losses[most]) ? [place] : []));
}

/** The share of its probability that a step loses without each token of the source. */
function lossesOf(columns, step) {
  return [...rowOf(columns.at(-1).matrix, step)].map((loss) => Math.max(0, loss));
}

/** In a sentence what the token of a step looks at and what it needs. */
function verdict(glass, columns, step, look, need) {
  const { record, say } = glass;
  const source = pieceTexts(record.source.tokens);
  const token = chip(pieceTexts(record.target.tokens)[step]);
  const [looks, looksAgain] = [chip(source[look]), chip(source[look])]; // an element stands in one place
  if (need === null) return phrase(say, "verdict_none", { token, looks });
  const needed = neededBy(columns, step, need, look);
  const losses = lossesOf(columns, step);
  const others = needed.filter((place) => place !== look);
  const name = others.length === needed.length ? "verdict_other" : others.length ? "verdict_tie" : "verdict_same";
  return phrase(say, name, { token, looks, looksAgain, needs: listed(others.map((place) => chip(source[place]))), lost: percent(losses[needed[0]]), lostThere: percent(losses[look]) });
}

/** A row for each token of the source, a bar for each column. */
function comparison({ record, say }, columns, step) {
  const head = make("tr", {}, make("th", { scope: "col" }, say("source")), columns.map(({ name }) => make("th", { scope: "col" }, say(`column_${name}`))));
  const rows = pieceTexts(record.source.tokens).map((name, place) =>
    make("tr", {}, make("th", { scope: "row" }, chip(name)), columns.map(({ matrix }) => barCell(matrix.values[step * matrix.columns + place]))),
  );
  return make("table", { class: "compare" }, make("thead", {}, head), make("tbody", {}, rows));
}

function barCell(share) {
  return make(
    "td",
    { "--share": Math.max(0, Math.min(1, share)).toFixed(4) },
    make("span", { class: "track" }, make("span", { class: "bar" })),
    make("span", { class: "number" }, share < -LEAST ? `−${percent(-share)}` : percent(Math.max(0, share))),
  );
}

function mapOf(glass, { name, matrix }) {
  const { record, say } = glass;
  const title = say(`column_${name}`);
  const picture = matrixPicture(glass, matrix, {
    label: title,
    rowNames: pieceTexts(record.target.tokens),
    columnNames: pieceTexts(record.source.tokens),
    side: "target",
    scale: "share",
    limit: Math.max(largest(matrix), 0.01),
    square: true,
    told: (row, column) => `${row} ← ${column}`,
  });
  return make("div", {}, make("h4", {}, title), picture);
}
