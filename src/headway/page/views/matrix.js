// A matrix as a picture: a rectangle for each number, read by hovering or with the arrow keys.

import { colourStrip, largest, painted } from "./colours.js";
import { ARROWS, make, sizeCanvas, whenSized } from "./elements.js";
import { hatch } from "./hatching.js";
import { drawColumnNames, drawRowNames, labelSpace, LEAST_LABEL } from "./names.js";
import { readable, readableIn } from "./numbers.js";
import { brief } from "./tokens.js";

/**
 * matrix: {rows, columns, values}. Options: label (of the picture, for those who don't see it), rowNames, columnNames,
 * side ("source" or "target": rows are tokens of it, and the one that is chosen is framed), scale ("share", "sign", the number of a head), limit
 * and low (the numbers of the last and, of shares, the first colour), square (cells are), cell (largest width of one, in
 * pixels), told(row, column) -> what stands before the number, move(row) is told where the reader is.
 */
export function matrixPicture(glass, matrix, options) {
  const { label, side = null, scale = "sign" } = options;
  const { rows, columns } = matrix;
  const limit = options.limit ?? (scale === "sign" ? largest(matrix) : 1);
  const low = scale === "sign" ? -limit : (options.low ?? 0);
  const readout = make("output", { class: "readout", "aria-live": "polite" });
  const canvas = make("canvas", {
    tabindex: 0,
    role: "application",
    "aria-roledescription": glass.say("matrixRole"),
    "aria-label": `${label} (${rows} × ${columns}). ${glass.say("matrixKeys")}`,
    "data-rows": side,
  });
  const picture = {
    glass,
    matrix,
    options: { cell: 26, square: false, ...options, side },
    canvas,
    readout,
    figure: make("figure", { class: "matrix" }, canvas, readout),
    image: painted(matrix, scale, limit, low),
    legend: colourLegend(scale, low, limit),
    at: null,
    place: null,
  };
  readout.replaceChildren(...picture.legend);
  const { square, cell, columnNames } = picture.options;
  canvas.style.height = `${square ? rows * cell + (columnNames ? labelSpace(columnNames) : 0) : rows * heightOfRow(rows)}px`; // about, until it is drawn
  listen(picture);
  whenSized(picture.figure, () => {
    picture.place = placeOf(picture);
    draw(picture);
  });
  return picture.figure;
}

const heightOfRow = (rows) => Math.max(4, Math.min(20, 480 / rows));

/** The place of the cells: {left, top, width, height}, the sizes of one cell. */
function placeOf({ matrix: { rows, columns }, options, figure }) {
  const { rowNames, columnNames, square, cell } = options;
  const left = rowNames ? Math.min(labelSpace(rowNames), figure.clientWidth / 4) : 0;
  const above = square && columnNames ? labelSpace(columnNames) : 0;
  const width = square ? Math.min(cell, (figure.clientWidth - left) / columns) : (figure.clientWidth - left) / columns;
  const height = square ? width : heightOfRow(rows);
  return { left, top: Math.max(above, rowNames ? Math.ceil((LEAST_LABEL + 2 - height) / 2) : 0), width, height };
}

function draw({ glass, matrix, options, canvas, figure, image, at, place }) {
  const { rows, columns } = matrix;
  const { left, top, width, height } = place;
  const context = sizeCanvas(canvas, Math.ceil(left + width * columns) + 1, Math.ceil(top + height * rows) + 1);
  const style = getComputedStyle(figure);
  context.imageSmoothingEnabled = width < 2;
  context.drawImage(image, left, top, width * columns, height * rows);
  hatch(context, style, matrix, place);
  context.strokeStyle = style.getPropertyValue("--glass-line");
  context.strokeRect(left + 0.5, top + 0.5, width * columns - 0.5, height * rows - 0.5);
  const chosen = options.side ? glass.chosen[options.side] : null;
  const { rowNames, columnNames, square } = options;
  if (rowNames) drawRowNames(context, style, rowNames, place, [at?.row, chosen]);
  if (square && columnNames) drawColumnNames(context, style, columnNames, place, [at?.column]);
  context.strokeStyle = style.getPropertyValue("--glass-accent");
  context.lineWidth = 2;
  if (chosen !== null && chosen < rows) context.strokeRect(left + 1, top + chosen * height, width * columns - 2, height);
  if (at) context.strokeRect(left + at.column * width, top + at.row * height, Math.max(width, 3), height);
}

/** Makes a cell stand out and reads it; null: none. */
function show(picture, at) {
  const { matrix, options, readout, legend } = picture;
  picture.at = at;
  draw(picture);
  options.move?.(at?.row ?? null);
  if (!at) {
    readout.replaceChildren(...legend);
    return;
  }
  const { rowNames, columnNames, told } = options;
  const names = [rowNames?.[at.row] ?? `${at.row + 1}`, columnNames?.[at.column] ?? `${at.column + 1}`].map((name) => brief(name, 24));
  readout.replaceChildren(
    make("bdi", {}, told(...names)),
    make("b", {}, readableIn(matrix, at.row, at.column)),
  );
}

function listen(picture) {
  const { glass, canvas, matrix, options } = picture;
  const { rows, columns } = matrix;
  const under = ({ offsetX, offsetY }) => {
    const { left, top, width, height } = picture.place;
    const [row, column] = [Math.floor((offsetY - top) / height), Math.floor((offsetX - left) / width)];
    return row < 0 || row >= rows || column < 0 || column >= columns ? null : { row, column };
  };
  const go = (to) => to && (to.row !== picture.at?.row || to.column !== picture.at?.column) && show(picture, to);
  canvas.addEventListener("pointermove", (event) => go(under(event)));
  canvas.addEventListener("pointerleave", () => picture.at && document.activeElement !== canvas && show(picture, null));
  const choose = (row) => options.side && row !== undefined && glass.choose(options.side, row);
  canvas.addEventListener("click", (event) => choose(under(event)?.row));
  canvas.addEventListener("chosen", () => canvas.isConnected && picture.place && draw(picture));
  canvas.addEventListener("keydown", (event) => {
    if (event.key === "Enter") choose(picture.at?.row);
    const step = ARROWS[event.key];
    if (!step) return;
    event.preventDefault();
    const to = (from, by, count) => Math.max(0, Math.min(count - 1, from + by * (event.shiftKey ? 8 : 1)));
    const { at } = picture;
    go(at ? { row: to(at.row, step[0], rows), column: to(at.column, step[1], columns) } : { row: 0, column: 0 });
  });
}

function colourLegend(scale, low, limit) {
  const end = (value) => make("span", { class: "quiet" }, readable(value));
  return [end(low), colourStrip(scale), end(limit)];
}

/** A small picture without names, a pixel for each number. label: what it is, where nothing beside it says so. */
export function thumbnail(matrix, { limit = 1, label = null, scale = "share" } = {}) {
  const image = painted(matrix, scale, limit);
  image.className = "thumbnail";
  if (label) {
    image.setAttribute("role", "img");
    image.setAttribute("aria-label", label);
  } else image.setAttribute("aria-hidden", "true");
  return image;
}
