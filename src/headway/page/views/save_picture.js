// Saves the picture that is shown as SVG or PNG, in light colours on white, with the sentence above it and a legend below.

import { isDark } from "./colours.js";
import { closeOnEscape, make, makeSvg } from "./elements.js";
import { shapesOf } from "./shapes.js";
import { visible } from "./tokens.js";

/** The pictures of a view, of which the first that is there is saved; of the others all that it shows. */
const PICTURES = { translate: [".looking"], heads: [".compared:not(:empty)", ".large"], steps: [".step-scene"] };
const [MARGIN, LINE, SIZE, SHARP] = [16, 22, 14, 2];
const [PATIENCE, TRIES] = [300, 20]; // milliseconds; a picture is painted a part at a time
const FONT = "system-ui, NanumGothic, sans-serif";
const WEIGHTS = [650, 400]; // of the sentence, and of the legend
const INK = "#1d1c19";

/** The button with its choices, a link to what is shown among them. state: of the box; draw() draws it anew. */
export function pictureButton(state, { say }, draw) {
  const save = (kind) => async () => {
    menu.open = false;
    const { theme } = state;
    if (isDark(theme)) {
      state.theme = "light";
      draw();
    }
    const view = state.root.dataset.view;
    const { source, target } = state.record;
    const take = () => framed(shapesOf(pictureOf(state.place.querySelector("[role=tabpanel]"), view)), `${visible(source.text)} → ${visible(target.text)}`, say(`legend_${view}`));
    let blob;
    try {
      const picture = state.theme === theme ? take() : await settled(take);
      blob = kind === "svg" ? new Blob([svgOf(picture)], { type: "image/svg+xml" }) : await pngOf(picture);
    } finally {
      if (state.theme !== theme) {
        state.theme = theme;
        draw();
      }
    }
    const address = URL.createObjectURL(blob);
    make("a", { href: address, download: `headway-${view}.${kind}` }).click();
    setTimeout(() => URL.revokeObjectURL(address), PATIENCE);
  };
  const note = make("span", { role: "status" });
  const copy = () =>
    setTimeout(async () => {
      const copied = await navigator.clipboard?.writeText(location.href).then(() => true, () => false);
      note.textContent = copied ? say("linkCopied") : location.href;
    }); // when the address holds what is shown
  const link = state.address ? make("button", { type: "button", click: copy }, say("copyLink")) : null;
  const buttons = ["svg", "png"].map((kind) => make("button", { type: "button", click: save(kind) }, kind.toUpperCase()));
  const menu = make("details", { class: "saving" }, make("summary", { "aria-label": say("keepPicture"), title: say("keepPicture") }, "⤓"), make("p", { class: "lead" }, say("savePicture"), ...buttons, link, note));
  closeOnEscape(menu);
  return menu;
}

function pictureOf(panel, view) {
  return [...(PICTURES[view] ?? []), ".view"].map((one) => panel.querySelector(one)).find((one) => one);
}

/** What take() gives when all is painted: when it gives the same again. */
async function settled(take) {
  let [picture, before] = [null, null];
  for (let tries = 0; tries < TRIES; tries++) {
    await new Promise((done) => setTimeout(done, PATIENCE));
    picture = take();
    const now = svgOf(picture);
    if (now === before) break;
    before = now;
  }
  return picture;
}

/** The shapes with a text above and another below, on white. */
function framed({ width, height, shapes }, above, below) {
  const [lines, legend] = [above, below].map((text, at) => broken(text, width, WEIGHTS[at]));
  const top = MARGIN + lines.length * LINE + MARGIN / 2;
  const whole = { width: width + 2 * MARGIN, height: top + height + MARGIN / 2 + legend.length * LINE + MARGIN };
  const write = (texts, from, weight) => texts.map((text, at) => ({ kind: "text", text, x: MARGIN, y: from + (at + 0.7) * LINE, width: null, size: SIZE, font: FONT, weight, fill: INK, alpha: 1, direction: "ltr" }));
  return { ...whole, shift: [MARGIN, top], shapes, around: [...write(lines, MARGIN, WEIGHTS[0]), ...write(legend, top + height + MARGIN / 2, WEIGHTS[1])] };
}

/** A text in lines of at most that width, broken where words end; Chinese and Japanese anywhere. */
function broken(text, width, weight) {
  const context = document.createElement("canvas").getContext("2d");
  context.font = `${weight} ${SIZE}px ${FONT}`;
  return text.split(/(?<=[ \p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}])/u).reduce((lines, word) => {
    const longer = `${lines.at(-1) ?? ""}${word}`;
    return lines.length && context.measureText(longer.trimEnd()).width <= width ? lines.with(-1, longer) : [...lines, word];
  }, []);
}

function svgOf({ width, height, shift, shapes, around }) {
  const image = makeSvg(
    "svg",
    { xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: `0 0 ${width} ${height}` },
    makeSvg("rect", { width, height, fill: "#ffffff" }),
    makeSvg("g", { transform: `translate(${shift.join(" ")})` }, shapes.map(elementOf)),
    around.map(elementOf),
  );
  return new XMLSerializer().serializeToString(image).replaceAll("<image data-href", "<image href"); // in the page it would be loaded
}

function elementOf(shape) {
  const opacity = shape.alpha < 1 ? shape.alpha : null;
  const { kind, fill, x, y, width, height } = shape;
  if (kind === "image") return makeSvg("image", { "data-href": shape.canvas.toDataURL(), x, y, width, height, opacity, preserveAspectRatio: "none", "image-rendering": shape.pixels ? "pixelated" : null });
  if (kind === "path") {
    const transform = shape.matrix ? `matrix(${shape.matrix.join(" ")})` : null;
    return makeSvg("path", { d: shape.d, transform, fill: fill ?? "none", stroke: shape.stroke, "stroke-width": shape.stroke && shape.strokeWidth, "stroke-dasharray": shape.dash, opacity });
  }
  const end = shape.direction === "rtl" && width !== null;
  return makeSvg("text", { x: end ? x + width : x, y, textLength: width, lengthAdjust: width === null ? null : "spacingAndGlyphs", "font-size": shape.size, "font-family": shape.font, "font-weight": shape.weight, fill, opacity, direction: end ? "rtl" : null }, shape.text);
}

function pngOf({ width, height, shift, shapes, around }) {
  const canvas = make("canvas", { width: width * SHARP, height: height * SHARP });
  const context = canvas.getContext("2d");
  context.fillStyle = "#ffffff";
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.setTransform(SHARP, 0, 0, SHARP, SHARP * shift[0], SHARP * shift[1]);
  for (const shape of shapes) paint(context, shape);
  context.setTransform(SHARP, 0, 0, SHARP, 0, 0);
  for (const shape of around) paint(context, shape);
  return new Promise((done) => canvas.toBlob(done));
}

function paint(context, shape) {
  context.save();
  context.globalAlpha = shape.alpha;
  const { kind, fill, x, y, width, height } = shape;
  context.imageSmoothingEnabled = !shape.pixels;
  if (kind === "image") context.drawImage(shape.canvas, x, y, width, height);
  else if (kind === "path") {
    if (shape.matrix) context.transform(...shape.matrix);
    const path = new Path2D(shape.d);
    Object.assign(context, { fillStyle: fill ?? "#000000", strokeStyle: shape.stroke ?? "#000000", lineWidth: shape.strokeWidth ?? 1 });
    if (shape.dash) context.setLineDash(shape.dash.split(/[ ,]+/u).map(parseFloat));
    if (fill) context.fill(path);
    if (shape.stroke) context.stroke(path);
  } else {
    Object.assign(context, { font: `${shape.weight} ${shape.size}px ${shape.font}`, fillStyle: fill, direction: shape.direction, textAlign: "left" });
    context.fillText(shape.text, x, y, width ?? undefined);
  }
  context.restore();
}
