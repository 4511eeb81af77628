// Draws the matrices of an attention as one picture.

import { painted } from "./colours.js";
import { sizeCanvas } from "./elements.js";
import { hatch } from "./hatching.js";
import { drawColumnNames, drawRowNames } from "./names.js";
import { HIDDEN } from "./numbers.js";
import { share, short } from "./scene_words.js";

const FAINT = 0.22;
const STRONG = 0.5; // of the largest: from here on a number is written in the colour of the page
const TITLE_FONT = '17px "STIX Two Text", Cambria, "Times New Roman", "DejaVu Serif", serif';
const NUMBER_FONT = "13px system-ui, sans-serif";
const TITLES = { queries: "Q", keys: "Kᵀ", weights: "A", values: "V", output: "A V" };
/** The custom property of each part's frames. */
const INKS = { queries: "accent", keys: "warm", scores: "accent", weights: "accent", values: "warm", output: "accent" };
const PARTS = Object.keys(INKS);

/** Images of the matrices, a pixel a number. scores: those that are shown; limits: by part, of its largest colour. */
export function sceneImages(attention, scores, limits) {
  const scaleOf = (part) => (part === "weights" ? attention.scale : "sign");
  const images = Object.entries(matricesOf({ attention, scores })).map(([part, matrix]) => [part, painted(matrix, scaleOf(part), limits[part] ?? 1)]);
  return Object.fromEntries(images);
}

/** state: {images, limits (by part, of its largest colour), layout, attention, scores, scoresTitle, bright (parts, or null: all), at, chosen (a row or null)} */
export function paintScene(canvas, style, state) {
  const { images, limits, layout, attention, bright, at, chosen } = state;
  const context = sizeCanvas(canvas, layout.width, layout.height);
  const matrices = matricesOf(state);
  for (const part of PARTS) {
    const place = layout.parts[part];
    context.globalAlpha = bright && !bright.includes(part) ? FAINT : 1;
    context.imageSmoothingEnabled = place.width < 1 || place.height < 1;
    context.drawImage(images[part], place.left, place.top, place.width * place.columns, place.height * place.rows);
    if (part === "scores" || part === "weights") hatch(context, style, part === "weights" ? attention.masked : state.scores, place);
    if (layout.small) writeNumbers(context, style, matrices[part], place, limits[part] ?? 1, part === "weights" ? share : short);
    context.strokeStyle = style.getPropertyValue("--glass-line");
    context.lineWidth = 1;
    context.strokeRect(place.left + 0.5, place.top + 0.5, place.width * place.columns - 1, place.height * place.rows - 1);
    writeTitle(context, style, part, part === "scores" ? state.scoresTitle : TITLES[part], place);
  }
  context.globalAlpha = 1;
  writeNames(context, style, state);
  drawWay(context, style, layout);
  const row = at && at.part !== "keys" && at.part !== "values" ? at.row : chosen;
  if (row !== null && row !== undefined) for (const part of ["queries", "scores", "weights", "output"]) frame(context, style, layout.parts[part], part, row, null);
  if (at) frameAll(context, style, layout.parts, at);
}

function matricesOf({ attention, scores }) {
  const { queries, keys, weights, values, output } = attention;
  return { queries, keys: transposed(keys), scores, weights, values, output };
}

function transposed({ rows, columns, values }) {
  const turned = new Float32Array(values.length);
  for (let row = 0; row < rows; row++) for (let column = 0; column < columns; column++) turned[column * rows + row] = values[row * columns + column];
  return { rows: columns, columns: rows, values: turned };
}

function writeTitle(context, style, part, text, { left, top, width, height, rows, columns }) {
  context.save();
  context.font = `italic ${TITLE_FONT}`;
  context.fillStyle = style.getPropertyValue(`--glass-${part === "weights" || part === "scores" || part === "output" ? "ink" : INKS[part]}`);
  context.textAlign = part === "keys" ? "right" : "center";
  const middle = left + (width * columns) / 2;
  const below = top + height * rows + 14;
  const [x, y] = { queries: [middle, top - 14], values: [middle, top - 14], keys: [left - 8, top + 10] }[part] ?? [middle, below];
  context.fillText(text, x, y);
  context.restore();
}

function writeNumbers(context, style, { columns, values }, { left, top, width, height }, limit, written) {
  context.save();
  context.font = NUMBER_FONT;
  context.textAlign = "center";
  values.forEach((value, at) => {
    const [x, y] = [left + ((at % columns) + 0.5) * width, top + (Math.floor(at / columns) + 0.5) * height];
    const strong = value > HIDDEN && Math.abs(value) > STRONG * limit;
    context.fillStyle = style.getPropertyValue(strong ? "--glass-surface" : "--glass-ink");
    context.fillText(written(value), x, y, width - 4);
  });
  context.restore();
}

function writeNames(context, style, { attention: { rowNames, columnNames }, layout: { parts, wide }, at, chosen }) {
  const rows = [at && at.part !== "keys" && at.part !== "values" ? at.row : null, chosen];
  const column = at && (at.part === "scores" || at.part === "weights" || at.part === "keys") ? at.column : at?.part === "values" ? at.row : null;
  if (rowNames) {
    drawRowNames(context, style, rowNames, parts.queries, rows);
    if (!wide) drawRowNames(context, style, rowNames, parts.weights, rows);
  }
  if (columnNames) {
    drawColumnNames(context, style, columnNames, parts.keys, [column]);
    drawRowNames(context, style, columnNames, parts.values, [column]);
  }
}

/** The arrow from the scores to the weights. */
function drawWay(context, style, { parts: { scores, weights }, wide }) {
  if (!wide) return;
  const [from, to] = [scores.left + scores.width * scores.columns + 10, weights.left - 10];
  const y = scores.top + (scores.height * scores.rows) / 2;
  context.strokeStyle = context.fillStyle = style.getPropertyValue("--glass-muted");
  context.lineWidth = 1.5;
  context.beginPath();
  context.moveTo(from, y);
  context.lineTo(to - 6, y);
  context.stroke();
  context.beginPath();
  context.moveTo(to, y);
  context.lineTo(to - 8, y - 5);
  context.lineTo(to - 8, y + 5);
  context.fill();
  context.textAlign = "center";
  context.fillText("softmax", (from + to) / 2, y - 10);
}

/** Frames what a cell is made of, and where it goes on to. */
function frameAll(context, style, parts, { part, row, column }) {
  const draw = (name, at, of) => frame(context, style, parts[name], name, at, of);
  if (part === "scores" || part === "weights") {
    draw("keys", null, column);
    draw("values", column, null);
    for (const one of ["scores", "weights"]) draw(one, row, column);
    draw("scores", null, column);
  } else if (part === "output") {
    draw("values", null, column);
    draw("output", row, column);
  } else draw(part, row, column);
}

/** A frame around a row, a column or a cell. */
function frame(context, style, { left, top, width, height, rows, columns }, part, row, column) {
  const [x, wide] = column === null ? [left, width * columns] : [left + column * width, width];
  const [y, high] = row === null ? [top, height * rows] : [top + row * height, height];
  const cell = row !== null && column !== null;
  context.strokeStyle = style.getPropertyValue(cell ? "--glass-ink" : column === null && part !== "values" ? "--glass-accent" : "--glass-warm");
  context.lineWidth = 2;
  context.strokeRect(x, y, Math.max(wide, 3), Math.max(high, 3));
}
