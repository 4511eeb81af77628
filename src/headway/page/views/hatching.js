// Hatches the numbers that a mask hides.

import { HIDDEN } from "./numbers.js";

const SPACE = 5;

/** Hatches the hidden numbers of a matrix whose cells are drawn at {left, top, width, height}. */
export function hatch(context, style, { rows, columns, values }, { left, top, width, height }) {
  if (!values.some((value) => value <= HIDDEN)) return;
  context.save();
  context.beginPath();
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      if (values[row * columns + column] <= HIDDEN) context.rect(left + column * width, top + row * height, width, height);
    }
  }
  context.clip();
  context.strokeStyle = style.getPropertyValue("--glass-muted");
  context.globalAlpha *= 0.55;
  context.lineWidth = 1;
  context.beginPath();
  const [wide, high] = [columns * width, rows * height];
  for (let at = -high; at < wide; at += SPACE) {
    context.moveTo(left + at, top + high);
    context.lineTo(left + at + high, top);
  }
  context.stroke();
  context.restore();
}
