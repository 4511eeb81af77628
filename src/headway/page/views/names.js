// Names of rows and columns beside a picture in a canvas.

import { LABEL_FONT } from "./elements.js";
import { brief } from "./tokens.js";

const LABEL_SPACE = 84;
/** Pixels that a name needs. */
export const LEAST_LABEL = 11;

/** The room that names need beside a picture. */
export function labelSpace(names) {
  const context = document.createElement("canvas").getContext("2d");
  context.font = LABEL_FONT;
  const widest = names.reduce((most, name) => Math.max(most, context.measureText(brief(name)).width), 0);
  return Math.ceil(Math.min(LABEL_SPACE, widest + 10));
}

/** Names at the left of rows; standing: the numbers of those that stand out. */
export function drawRowNames(context, style, names, { left, top, height }, standing) {
  context.textAlign = "right";
  each(context, style, names, height, standing, (name, row) => context.fillText(name, left - 6, top + (row + 0.5) * height, left - 8));
}

/** Names above columns. */
export function drawColumnNames(context, style, names, { left, top, width }, standing) {
  context.textAlign = "left";
  each(context, style, names, width, standing, (name, column) => {
    context.save();
    context.translate(left + (column + 0.5) * width, top - 6);
    context.rotate(-Math.PI / 2);
    context.fillText(name, 0, 0, top - 8);
    context.restore();
  });
}

/** Writes names; without room for all, every second or third, and those that stand out. */
function each(context, style, names, size, standing, write) {
  const every = Math.ceil(LEAST_LABEL / size);
  names.forEach((name, number) => {
    const stands = standing.includes(number);
    if (number % every && !stands) return;
    context.fillStyle = style.getPropertyValue(stands ? "--glass-ink" : "--glass-muted");
    write(brief(name), number);
  });
}
