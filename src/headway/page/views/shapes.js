// What an element shows, as shapes with all styles in them: boxes, texts, paths and images, in the order of painting.

const LEFT_OUT = ".unseen, input, select, textarea, form, label.select, button.primary, .player, .play, .step-bars > button, .hint";
const colours = new Map();

/** -> {width, height, shapes}: {kind: "path", d, matrix, fill, stroke, strokeWidth, dash, alpha}, {kind: "text", text, x, y, width,
 * size, font, fill, alpha, direction} or {kind: "image", canvas, x, y, width, height, alpha, pixels: whether
 * they stay sharp}; colours are #rrggbb or null. */
export function shapesOf(element) {
  const { left, top, width, height } = element.getBoundingClientRect();
  const shapes = [];
  collect(element, { left, top, alpha: 1 }, shapes);
  return { width: Math.ceil(width), height: Math.ceil(height), shapes };
}

function collect(node, { left, top, alpha }, shapes) {
  const style = getComputedStyle(node);
  if (node.matches(`${LEFT_OUT}, details:not([open]) > :not(summary)`) || style.display === "none" || style.visibility === "hidden") return;
  const around = { left, top, alpha: alpha * Number(style.opacity) };
  if (node instanceof SVGGeometryElement) shapes.push(...pathOf(node, style, around));
  else if (node instanceof HTMLElement) shapes.push(...boxOf(node, style, around));
  for (const child of node.childNodes) {
    if (child.nodeType === Node.TEXT_NODE) shapes.push(...linesOf(child, style, around));
    else if (child.nodeType === Node.ELEMENT_NODE) collect(child, around, shapes);
  }
}

/** The background, the border, and the image of an element. */
function boxOf(element, style, { left, top, alpha }) {
  const rect = element.getBoundingClientRect();
  const [x, y, width, height] = [rect.left - left, rect.top - top, rect.width, rect.height];
  if (!width || !height) return [];
  const radius = Math.min(parseFloat(style.borderTopLeftRadius) || 0, width / 2, height / 2);
  const box = (fill, wide = width, more = {}) => ({ kind: "path", d: roundBox(x, y, wide, height, Math.min(radius, wide / 2)), fill, stroke: null, alpha, ...more });
  const shapes = [];
  const fill = colourOf(style.backgroundColor);
  if (fill) shapes.push(box(fill));
  const bar = /^linear-gradient\(to right, (.+?\)) ([\d.]+)%, (.+?\)) 0(?:px|%)?\)$/u.exec(style.backgroundImage.split(/, (?=linear-gradient)/u).at(-1));
  if (bar) shapes.push(box(colourOf(bar[3])), ...(Number(bar[2]) > 0 ? [box(colourOf(bar[1]), (width * Number(bar[2])) / 100)] : []));
  const line = parseFloat(style.borderTopWidth);
  const stroke = line && style.borderTopStyle !== "none" ? colourOf(style.borderTopColor) : null;
  if (stroke && parseFloat(style.borderLeftWidth)) shapes.push(box(null, width, { stroke, strokeWidth: line }));
  else if (stroke) shapes.push({ kind: "path", d: `M${x} ${y}H${x + width}`, fill: null, stroke, strokeWidth: line, alpha });
  if (element.localName === "canvas") shapes.push({ kind: "image", canvas: element, x, y, width, height, alpha, pixels: style.imageRendering === "pixelated" });
  return shapes;
}

function roundBox(x, y, width, height, radius) {
  if (!radius) return `M${x} ${y}h${width}v${height}h${-width}z`;
  const corner = (dx, dy) => `a${radius} ${radius} 0 0 1 ${dx} ${dy}`;
  const [across, down] = [width - 2 * radius, height - 2 * radius];
  return `M${x + radius} ${y}h${across}${corner(radius, radius)}v${down}${corner(-radius, radius)}h${-across}${corner(-radius, -radius)}v${-down}${corner(radius, -radius)}z`;
}

/** A line, rectangle, circle or path of an SVG. */
function pathOf(node, style, { left, top, alpha }) {
  const { a, b, c, d, e, f } = node.getScreenCTM();
  const [fill, stroke] = ["fill", "stroke"].map((name) => colourOf(style[name]));
  if (!fill && !stroke) return [];
  const fades = Number(style[stroke ? "strokeOpacity" : "fillOpacity"]);
  return [{ kind: "path", d: outlineOf(node), matrix: [a, b, c, d, e - left, f - top], fill, stroke, strokeWidth: parseFloat(style.strokeWidth), dash: style.strokeDasharray === "none" ? null : style.strokeDasharray, alpha: alpha * fades }];
}

function outlineOf(node) {
  const number = (name) => node[name].baseVal.value;
  const points = () => [...node.points].map(({ x, y }) => `${x} ${y}`).join("L");
  if (node.localName === "line") return `M${number("x1")} ${number("y1")}L${number("x2")} ${number("y2")}`;
  if (node.localName === "rect") return roundBox(...["x", "y", "width", "height", "rx"].map(number));
  if (node.localName === "circle") return roundBox(number("cx") - number("r"), number("cy") - number("r"), 2 * number("r"), 2 * number("r"), number("r"));
  if (node.localName === "polyline") return `M${points()}`;
  return node.localName === "polygon" ? `M${points()}Z` : node.getAttribute("d");
}

/** A text node's lines as they are broken. */
function linesOf(node, style, { left, top, alpha }) {
  if (!node.data.trim()) return [];
  const range = document.createRange();
  const lines = [];
  let at = 0;
  for (const character of node.data) {
    range.setStart(node, at);
    range.setEnd(node, (at += character.length));
    const rect = range.getBoundingClientRect();
    const last = lines.at(-1);
    if (!character.trim()) {
      if (last) last.text += " ";
    } else if (last && Math.abs(rect.top - last.top) < rect.height / 2) {
      Object.assign(last, { text: last.text + character, left: Math.min(last.left, rect.left), right: Math.max(last.right, rect.right) });
    } else lines.push({ text: character, left: rect.left, right: rect.right, top: rect.top, height: rect.height });
  }
  const size = parseFloat(style.fontSize) * (node.parentElement instanceof SVGElement ? node.parentElement.getScreenCTM().a : 1);
  const fill = colourOf(node.parentElement instanceof SVGElement ? style.fill : style.color);
  return lines.flatMap((line) => {
    const text = line.text.replace(/\s+/gu, " ").trim();
    const shape = { kind: "text", text, x: line.left - left, y: line.top - top + 0.78 * line.height, width: line.right - line.left, size, font: style.fontFamily, weight: style.fontWeight, fill, alpha, direction: style.direction };
    return text && fill ? [shape] : [];
  });
}

/** As #rrggbb; null for none. Half-transparent ones as they are on white. */
function colourOf(text) {
  if (!text || text === "none" || text.startsWith("url")) return null;
  if (!colours.has(text)) {
    const context = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d");
    context.fillStyle = text;
    context.fillRect(0, 0, 1, 1);
    const [red, green, blue, opacity] = context.getImageData(0, 0, 1, 1).data;
    const onWhite = (part) => Math.round(255 + ((part - 255) * opacity) / 255).toString(16).padStart(2, "0");
    colours.set(text, opacity ? `#${[red, green, blue].map(onWhite).join("")}` : null);
  }
  return colours.get(text);
}
