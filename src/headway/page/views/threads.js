// Attention as lines: on the left the tokens that ask, on the right those that answer.

import { make, sizeCanvas, whenSized } from "./elements.js";
import { decimal, percent, rowOf } from "./numbers.js";
import { entropy } from "./sampling.js";
import { brief } from "./tokens.js";

const LEAST = 0.02;
const SPACE = 110;
const WIDEST = 460;

/** A canvas of the lines of `matrix`; colour: that of the lines; show(row) makes one row stand out, null none. -> {element, show} */
export function threadPicture({ say }, matrix, rowNames, columnNames, label, colour) {
  const canvas = make("canvas", {
    tabindex: 0,
    role: "application",
    "aria-roledescription": say("linesRole"),
    "aria-label": `${label}. ${say("linesKeys")}`,
  });
  const readout = make("output", { class: "readout", "aria-live": "polite" });
  const figure = make("figure", { class: "matrix lines" }, canvas, readout);
  const longest = Math.max(matrix.rows, matrix.columns);
  const threads = { matrix, colour, rowNames, columnNames, canvas, figure, longest, step: Math.max(13, Math.min(26, 520 / longest)), chosen: null };
  canvas.style.height = `${heightOf(threads)}px`; // from the first layout on
  const show = (row) => {
    if (row === threads.chosen) return;
    threads.chosen = row;
    draw(threads);
    readout.replaceChildren(...(row === null ? [] : said(say, threads)));
  };
  listen(threads, show);
  whenSized(figure, () => draw(threads));
  return { element: figure, show };
}

const heightOf = ({ step, longest }) => step * longest + 8;

function draw(threads) {
  const { matrix, canvas, figure, longest, step } = threads;
  const width = Math.min(figure.clientWidth, WIDEST);
  const space = Math.min(SPACE, width / 3);
  const context = sizeCanvas(canvas, width, heightOf(threads));
  const style = getComputedStyle(figure);
  const colours = Object.fromEntries(["ink", "muted", "accent"].map((name) => [name, style.getPropertyValue(`--glass-${name}`)]));
  const y = (place, count) => 4 + (place + 0.5 + (longest - count) / 2) * step;
  const ends = { left: space, right: width - space, space, fromY: (row) => y(row, matrix.rows), toY: (column) => y(column, matrix.columns) };
  drawLines(context, threads, ends, threads.colour);
  drawNames(context, threads, ends, colours);
}

function drawLines(context, { matrix: { rows, columns, values }, chosen }, { left, right, fromY, toY }, colour) {
  const half = (left + right) / 2;
  context.lineCap = "round";
  context.strokeStyle = colour;
  for (let row = 0; row < rows; row++) {
    if (chosen !== null && row !== chosen) continue;
    for (let column = 0; column < columns; column++) {
      const weight = values[row * columns + column];
      if (weight < LEAST) continue;
      context.globalAlpha = Math.min(1, chosen === null ? 0.08 + weight * 0.9 : 0.25 + weight);
      context.lineWidth = 0.5 + 4 * weight;
      context.beginPath();
      context.moveTo(left, fromY(row));
      context.bezierCurveTo(half, fromY(row), half, toY(column), right, toY(column));
      context.stroke();
    }
  }
  context.globalAlpha = 1;
}

function drawNames(context, { matrix: { columns, values }, rowNames, columnNames, chosen }, { left, right, space, fromY, toY }, { ink, muted, accent }) {
  context.textAlign = "right";
  rowNames.forEach((name, row) => {
    context.fillStyle = row === chosen ? accent : chosen === null ? ink : muted;
    context.fillText(brief(name), left - 8, fromY(row), space - 10);
  });
  context.textAlign = "left";
  columnNames.forEach((name, column) => {
    context.fillStyle = chosen === null || values[chosen * columns + column] >= 0.1 ? ink : muted;
    context.fillText(brief(name), right + 8, toY(column), space - 10);
  });
}

/** Text about the strongest weights of the chosen row. */
function said(say, { matrix, rowNames, columnNames, chosen }) {
  const weights = [...rowOf(matrix, chosen)].map((weight, column) => [weight, column]);
  const bits = say("bits", { count: decimal(entropy(weights.map(([weight]) => weight))) });
  const largest = weights.toSorted((one, other) => other[0] - one[0]).slice(0, 3).filter(([weight]) => weight > 0);
  return [
    make("bdi", {}, say("looksAt", { token: brief(rowNames[chosen], 24) })),
    ...largest.map(([weight, column]) => make("span", { class: "named" }, make("bdi", {}, brief(columnNames[column], 24)), ` ${percent(weight)}`)),
    make("span", { class: "quiet" }, `${say("by_entropy")} ${bits}`),
  ];
}

function listen(threads, show) {
  const { matrix: { rows }, canvas, longest, step } = threads;
  canvas.addEventListener("pointermove", (event) => {
    const row = Math.floor((event.offsetY - 4) / step - (longest - rows) / 2);
    show(row >= 0 && row < rows ? row : null);
  });
  canvas.addEventListener("pointerleave", () => document.activeElement !== canvas && show(null));
  canvas.addEventListener("keydown", (event) => {
    const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    show(threads.chosen === null ? 0 : Math.max(0, Math.min(rows - 1, threads.chosen + by)));
  });
}
