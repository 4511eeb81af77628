// The parts that explain every block of the machine: stages of an equation, shapes, a paragraph and the numbers.

import { formula, make } from "./elements.js";
import { matrixPicture } from "./matrix.js";
import { matrixOf, sideBySide } from "./numbers.js";
import { termed } from "./terms.js";
import { pieceTexts } from "./tokens.js";

/** A stage: its title and paragraph are the texts `titleTitle` and `nameText`. body: elements below. */
export function stage(say, name, { title = name, equation, shape, values }, ...body) {
  return make(
    "section",
    { class: "stage" },
    make("h5", {}, say(`${title}Title`)),
    equation || shape ? make("p", { class: "equation" }, equation ? formula(equation) : null, shape ? make("span", { class: "shape" }, shape) : null) : null,
    make("p", {}, termed(say, say(`${name}Text`, values))),
    body,
  );
}

export const times = (...sizes) => sizes.join(" × ");

/** A short line beside a stage. */
export const note = (text) => make("p", { class: "quiet" }, text);

/** The picture of an array of the record by its name, or a line where it has none. rows: from rowsOf; options: also
 * `joined`: all heads side by side. */
export function arrayPicture(glass, name, rows, options = {}) {
  const array = glass.get(name);
  if (!array) return note(glass.say("noNumbers"));
  const matrix = options.joined ? sideBySide(array) : matrixOf(array);
  return picture(glass, matrix, { label: glass.say("numbersOf"), ...rows, ...options });
}

export function picture(glass, matrix, options) {
  const told = options.columnNames
    ? (row, column) => `${row} → ${column}`
    : (row, column) => glass.say("dimensionOf", { row, column });
  return matrixPicture(glass, matrix, { told, ...options });
}

/** The rows of what a stack computes: their names, and of which side they are. A row of the decoder is named by the token
 * that it writes, here as in every picture. */
export function rowsOf({ record }, stack) {
  return stack === "encoder"
    ? { rowNames: pieceTexts(record.source.tokens), side: "source" }
    : { rowNames: pieceTexts(record.target.tokens), side: "target" };
}

/** Whether the record is of a model with that edit. */
export function isEdited({ record }, kind) {
  return record.edits.some((edit) => edit.kind === kind);
}
