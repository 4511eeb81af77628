// A matrix as a picture: a rectangle for each number, read by hovering or with the arrow keys.

import { colourStrip, largest, painted } from "./colours.js";
import { make, sizeCanvas, whenSized } from "./elements.js";
import { readable } from "./numbers.js";
import { brief } from "./tokens.js";

const FONT = "12px system-ui, NanumGothic, sans-serif";
const LABEL_SPACE = 84;
const LEAST_LABEL = 11;

/**
 * matrix: {rows, columns, values}. Options: label (of the picture, for those who don't see it), rowNames, columnNames,
 * scale ("share", "sign"), limit and low (the numbers of the last and, of shares, the first colour), square (cells are), cell (largest width of one, in pixels), mark (row to frame), room (names to leave room for, where not all are shown yet),
 * told(row, column) -> what stands before the number, move(row, column) is told where the reader is.
 */
export function matrixPicture(matrix, options) {
  const { label, rowNames, columnNames, scale = "sign", square = false, cell = 26, told, move } = options;
  const { rows, columns, values } = matrix;
  const canvas = make("canvas", { tabindex: 0, role: "img", "aria-label": `${label} (${rows} × ${columns})` });
  const readout = make("output", { class: "readout", "aria-live": "polite" });
  const figure = make("figure", { class: "matrix" }, canvas, readout);
  const limit = options.limit ?? (scale === "share" ? 1 : largest(matrix));
  const low = scale === "share" ? (options.low ?? 0) : -limit;
  const image = painted(matrix, scale, limit, low);
  const legend = options.mark === undefined ? colourLegend(scale, low, limit) : [];
  readout.replaceChildren(...legend);
  let at = null;
  let place = null;

  const lay = () => {
    const left = rowNames ? Math.min(labelSpace(options.room ?? rowNames), figure.clientWidth / 4) : 0;
    const above = square && columnNames ? labelSpace(options.room ?? columnNames) : 0;
    const width = square ? Math.min(cell, (figure.clientWidth - left) / columns) : (figure.clientWidth - left) / columns;
    const height = square ? width : Math.max(4, Math.min(20, 480 / rows));
    const top = Math.max(above, rowNames ? Math.ceil((LEAST_LABEL + 2 - height) / 2) : 0);
    place = { left, top, width, height };
    draw();
  };
  const draw = () => {
    const { left, top, width, height } = place;
    const context = sizeCanvas(canvas, Math.ceil(left + width * columns) + 1, Math.ceil(top + height * rows) + 1);
    const style = getComputedStyle(figure);
    context.imageSmoothingEnabled = width < 2;
    context.drawImage(image, left, top, width * columns, height * rows);
    context.strokeStyle = style.getPropertyValue("--glass-line");
    context.strokeRect(left + 0.5, top + 0.5, width * columns - 0.5, height * rows - 0.5);
    context.font = FONT;
    context.textBaseline = "middle";
    const colour = (chosen) => style.getPropertyValue(chosen ? "--glass-ink" : "--glass-muted");
    const everyRow = Math.ceil(LEAST_LABEL / height);
    for (let row = 0; rowNames && row < rows; row++) {
      if (row % everyRow && at?.row !== row) continue;
      context.fillStyle = colour(at?.row === row);
      context.textAlign = "right";
      context.fillText(brief(rowNames[row]), left - 6, top + (row + 0.5) * height, left - 8);
    }
    const everyColumn = Math.ceil(LEAST_LABEL / width);
    for (let column = 0; square && columnNames && column < columns; column++) {
      if (column % everyColumn && at?.column !== column) continue;
      context.save();
      context.translate(left + (column + 0.5) * width, top - 6);
      context.rotate(-Math.PI / 2);
      context.textAlign = "left";
      context.fillStyle = colour(at?.column === column);
      context.fillText(brief(columnNames[column]), 0, 0, top - 8);
      context.restore();
    }
    context.strokeStyle = style.getPropertyValue("--glass-accent");
    context.lineWidth = 2;
    if (options.mark !== undefined) context.strokeRect(left + 1, top + options.mark * height, width * columns - 2, height);
    if (at) context.strokeRect(left + at.column * width, top + at.row * height, Math.max(width, 3), height);
  };
  const show = (row, column) => {
    at = row === null ? null : { row, column };
    draw();
    move?.(row, column);
    if (!at) {
      readout.replaceChildren(...legend);
      return;
    }
    const names = [rowNames?.[row] ?? `${row + 1}`, columnNames?.[column] ?? `${column + 1}`].map((name) => brief(name, 24));
    readout.replaceChildren(
      make("bdi", {}, told ? told(...names) : `${names[0]}, ${names[1]}`),
      make("b", {}, readable(values[row * columns + column])),
    );
  };

  canvas.addEventListener("pointermove", (event) => {
    const { left, top, width, height } = place;
    const column = Math.floor((event.offsetX - left) / width);
    const row = Math.floor((event.offsetY - top) / height);
    if (row < 0 || row >= rows || column < 0 || column >= columns) return;
    if (row !== at?.row || column !== at?.column) show(row, column);
  });
  canvas.addEventListener("pointerleave", () => at && document.activeElement !== canvas && show(null, null));
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!step) return;
    event.preventDefault();
    const far = event.shiftKey ? 8 : 1;
    const to = (from, by, count) => Math.max(0, Math.min(count - 1, from + by * far));
    show(...(at ? [to(at.row, step[0], rows), to(at.column, step[1], columns)] : [0, 0]));
  });
  whenSized(figure, lay);
  return figure;
}

/** The room that names need beside a picture. */
function labelSpace(names) {
  const context = document.createElement("canvas").getContext("2d");
  context.font = FONT;
  const widest = names.reduce((most, name) => Math.max(most, context.measureText(brief(name)).width), 0);
  return Math.ceil(Math.min(LABEL_SPACE, widest + 10));
}

function colourLegend(scale, low, limit) {
  const strip = colourStrip(scale);
  strip.className = "strip";
  const end = (value) => make("span", { class: "quiet" }, readable(value));
  return [end(low), strip, end(limit)];
}

/** A small picture without labels, a pixel for each number. */
export function thumbnail(matrix, scale = "share", limit = 1) {
  const image = painted(matrix, scale, limit);
  image.className = "thumbnail";
  image.setAttribute("aria-hidden", "true");
  return image;
}
