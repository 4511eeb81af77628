// Attention as lines: on the left the tokens that ask, on the right those that answer.

import { make, sizeCanvas, whenSized } from "./elements.js";
import { percent } from "./numbers.js";
import { brief } from "./tokens.js";

const FONT = "13px system-ui, NanumGothic, sans-serif";
const LEAST = 0.02;
const SPACE = 110;

/** A canvas of the lines of `matrix`; show(row) makes one row stand out, null none. -> {element, show} */
export function threadPicture({ rows, columns, values }, rowNames, columnNames, { label, say, move }) {
  const canvas = make("canvas", { tabindex: 0, role: "img", "aria-label": label });
  const readout = make("output", { class: "readout", "aria-live": "polite" });
  const figure = make("figure", { class: "matrix lines" }, canvas, readout);
  const longest = Math.max(rows, columns);
  const step = Math.max(13, Math.min(26, 520 / longest));
  let chosen = null;

  const draw = () => {
    const width = Math.min(figure.clientWidth, 460);
    const context = sizeCanvas(canvas, width, step * longest + 8);
    const style = getComputedStyle(figure);
    const [ink, muted, accent] = ["ink", "muted", "accent"].map((name) => style.getPropertyValue(`--glass-${name}`));
    const space = Math.min(SPACE, width / 3);
    const y = (place, count) => 4 + (place + 0.5 + (longest - count) / 2) * step;
    context.font = FONT;
    context.textBaseline = "middle";
    context.lineCap = "round";
    context.strokeStyle = accent;
    for (let row = 0; row < rows; row++) {
      if (chosen !== null && row !== chosen) continue;
      for (let column = 0; column < columns; column++) {
        const weight = values[row * columns + column];
        if (weight < LEAST) continue;
        context.globalAlpha = Math.min(1, chosen === null ? 0.08 + weight * 0.9 : 0.25 + weight);
        context.lineWidth = 0.5 + 4 * weight;
        context.beginPath();
        context.moveTo(space, y(row, rows));
        context.bezierCurveTo(width / 2, y(row, rows), width / 2, y(column, columns), width - space, y(column, columns));
        context.stroke();
      }
    }
    context.globalAlpha = 1;
    for (let row = 0; row < rows; row++) {
      context.fillStyle = row === chosen ? accent : chosen === null ? ink : muted;
      context.textAlign = "right";
      context.fillText(brief(rowNames[row]), space - 8, y(row, rows), space - 10);
    }
    for (let column = 0; column < columns; column++) {
      const weight = chosen === null ? 0 : values[chosen * columns + column];
      context.fillStyle = chosen === null || weight >= 0.1 ? ink : muted;
      context.textAlign = "left";
      context.fillText(brief(columnNames[column]), width - space + 8, y(column, columns), space - 10);
    }
  };
  const show = (row) => {
    if (row === chosen) return;
    chosen = row;
    draw();
    readout.replaceChildren();
    if (row === null) return;
    const part = [...values.subarray(row * columns, (row + 1) * columns)].map((weight, column) => [weight, column]);
    const largest = part.sort((one, other) => other[0] - one[0]).slice(0, 3).filter(([weight]) => weight > 0);
    readout.append(
      make("bdi", {}, say("looksAt", { token: brief(rowNames[row], 24) })),
      ...largest.map(([weight, column]) => make("span", { class: "named" }, make("bdi", {}, brief(columnNames[column], 24)), ` ${percent(weight)}`)),
    );
  };
  const choose = (row) => {
    show(row);
    move(row);
  };
  canvas.addEventListener("pointermove", (event) => {
    const row = Math.floor((event.offsetY - 4) / step - (longest - rows) / 2);
    choose(row >= 0 && row < rows ? row : null);
  });
  canvas.addEventListener("pointerleave", () => document.activeElement !== canvas && choose(null));
  canvas.addEventListener("keydown", (event) => {
    const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    choose(chosen === null ? 0 : Math.max(0, Math.min(rows - 1, chosen + by)));
  });
  whenSized(figure, draw);
  return { element: figure, show };
}
