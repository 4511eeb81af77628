// Lines between words that stand above and below each other, as wide as the shares that they stand for.

import { makeSvg } from "./elements.js";

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
