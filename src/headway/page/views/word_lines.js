// Lines between words that stand above and below each other, as wide as the shares that they stand for.

import { makeSvg } from "./elements.js";
import { brief } from "./tokens.js";

const THINNEST = 1.5;
const WIDEST = 15;

/** Draws lines into `svg`, in the place of those before. lines: {from, to, share, look}: from the lower edge of an
 * element to the upper edge of another; grows: whether they are seen to grow. */
export function drawLines(svg, lines, grows = false) {
  const frame = svg.getBoundingClientRect();
  const boxes = new Map();
  const box = (element) => {
    if (!boxes.has(element)) boxes.set(element, element.getBoundingClientRect());
    return boxes.get(element);
  };
  const middle = ({ left, width }) => left + width / 2 - frame.left;
  const paths = lines.map(({ from, to, share, look = "" }) => {
    const [x, y] = [middle(box(from)), box(from).bottom - frame.top];
    const [toX, toY] = [middle(box(to)), box(to).top - frame.top];
    const half = (y + toY) / 2;
    return makeSvg("path", {
      d: `M${x} ${y}C${x} ${half} ${toX} ${half} ${toX} ${toY}`,
      "stroke-width": (THINNEST + (WIDEST - THINNEST) * share).toFixed(1),
      pathLength: grows ? 1 : null,
      class: `${look}${grows ? " grows" : ""}`.trim() || null,
    });
  });
  svg.replaceChildren(...paths);
}

/** Adds arcs below the words of one row, from each to another. */
export function drawArcs(svg, arcs) {
  const frame = svg.getBoundingClientRect();
  const end = (element) => {
    const { left, width, bottom } = element.getBoundingClientRect();
    return [left + width / 2 - frame.left, bottom - frame.top];
  };
  const paths = arcs.map(({ from, to, share }) => {
    const [[x, y], [toX, toY]] = [end(from), end(to)];
    const deep = Math.min(58, 16 + Math.abs(x - toX) / 6);
    return makeSvg("path", { d: `M${x} ${y}C${x} ${y + deep} ${toX} ${toY + deep} ${toX} ${toY}`, "stroke-width": (THINNEST + 7 * share).toFixed(1), class: "arc" });
  });
  svg.append(...paths);
}

/** About how many widths of a letter a row of words needs: its size can follow from that. words: {text, control} */
export function lettersOf(words) {
  const width = (text) => [...text].reduce((sum, character) => sum + (/[\p{Script=Hangul}\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/u.test(character) ? 1 : 0.56), 0);
  return words.reduce((sum, { text, control }) => sum + (control ? 2.2 : width(brief(text, 40))) + 1.15, 1);
}
