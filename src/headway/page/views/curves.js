// Deletion curves: how fast the translation falls when the source is erased in the order of each method.

import { headColour } from "./colours.js";
import { make, makeSvg } from "./elements.js";
import { decimal } from "./numbers.js";

const [WIDTH, HEIGHT, LEFT, BELOW] = [480, 220, 40, 34];

export function curvesPart({ say }, analyses) {
  const { erased, probability } = analyses.found("faithfulness").fields;
  const names = Object.keys(probability.curves).toSorted((one, other) => probability.areas[one] - probability.areas[other]);
  const colour = (name) => (name === "random" ? "var(--glass-muted)" : headColour(names.indexOf(name)));
  const x = (at) => LEFT + (at * (WIDTH - LEFT - 8)) / Math.max(1, erased.length - 1);
  const y = (value) => 8 + (1 - value) * (HEIGHT - BELOW - 8);
  const text = (at, place, anchor, content) => makeSvg("text", { x: at, y: place, "text-anchor": anchor }, content);
  const lines = names.map((name) => {
    const line = makeSvg("polyline", { points: probability.curves[name].map((value, at) => `${x(at)},${y(value)}`).join(" "), "stroke-dasharray": name === "random" ? "5 4" : null });
    line.style.stroke = colour(name);
    return line;
  });
  const picture = makeSvg(
    "svg",
    { class: "curves", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": say("curvesTitle") },
    [0, 0.5, 1].map((value) => [makeSvg("line", { x1: LEFT, x2: WIDTH, y1: y(value), y2: y(value) }), text(LEFT - 6, y(value) + 4, "end", `${value * 100}%`)]).flat(),
    erased.map((count, at) => text(x(at), HEIGHT - BELOW + 16, at ? "middle" : "start", `${count}`)),
    text((LEFT + WIDTH) / 2, HEIGHT - 4, "middle", say("tokensErased")),
    lines,
  );
  const rows = names.map((name) => {
    const swatch = make("span", { class: "swatch", "aria-hidden": "true", "--head": colour(name) });
    return make("tr", {}, make("th", { scope: "row" }, swatch, say(`method_${name}`)), make("td", { class: "number" }, decimal(probability.areas[name], 3)));
  });
  const head = make("tr", {}, make("th", { scope: "col" }, say("method")), make("th", { scope: "col" }, say("area")));
  return [make("div", { class: "curves-and-areas" }, picture, make("table", { class: "lens areas" }, make("thead", {}, head), make("tbody", {}, rows)))];
}
