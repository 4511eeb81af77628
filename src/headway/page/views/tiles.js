// A block of the machine: a button with its name, its size, and a strip of its data, a row a token.

import { headColour, largest, painted } from "./colours.js";
import { inTurn, make } from "./elements.js";
import { matrixOf } from "./numbers.js";
import { brief, pieceTexts } from "./tokens.js";

const WIDEST = 96; // columns of a strip; wider data is drawn smaller
const LIKELIEST = 5;

/** -> {element, button, strips}; strips: the place of the data */
export function tile(title, sizes, { look, place }, click) {
  const strips = make("span", { class: "strips", "aria-hidden": "true" });
  const button = make(
    "button",
    { type: "button", "aria-controls": "glass-panel", "aria-expanded": "false", "data-place": place, click },
    make("span", { class: "name" }, title),
    strips,
    make("span", { class: "sizes" }, sizes),
  );
  return { element: make("div", { class: `block ${look}` }, make("h4", {}, button)), button, strips };
}

/** The tokens as the rows of the first block; one that is clicked on is followed. */
export function tokenTile(glass, element, tokens, side) {
  const rows = tokens.map((name, row) => make("span", { class: "row-name", click: (event) => followed(event, row) }, make("bdi", {}, brief(name, 14))));
  const followed = (event, row) => {
    event.stopPropagation();
    glass.choose(side, glass.chosen[side] === row ? null : row);
  };
  element.querySelector(".strips").append(...rows);
}

/** Draws the data of blocks, one block in a frame. place: what they stand in */
export function refreshStrips(glass, place, blocks) {
  inTurn(place, blocks.filter(({ kind }) => kind !== "tokens"), ({ kind, about, strips }) => strips.replaceChildren(...(STRIPS[kind]?.(glass, about) ?? [])));
}

/** By kind of block: what flows out of it. */
const STRIPS = {
  embedding: (glass, { stack }) => [strip(glass, `${stack === "encoder" ? "source" : "target"}_embedding.scaled`)],
  positions: (glass, { stack }) => [strip(glass, `${stack}.input`)],
  attention: (glass, { sublayer, shown }) => [weightsStrip(glass, `${sublayer}.weights`, shown.head), strip(glass, `${sublayer}.output`)],
  norm: (glass, { sublayer }) => [strip(glass, `${sublayer}.normalised`)],
  addNorm: (glass, { sublayer }) => [strip(glass, `${sublayer}.normalised`)],
  add: (glass, { sublayer }) => [strip(glass, `${sublayer}.sum`)],
  feedForward: (glass, { sublayer }) => [strip(glass, `${sublayer}.hidden`), strip(glass, `${sublayer}.output`)],
  output: (glass, { stack }) => [strip(glass, `${stack}.output`)],
  linear: (glass) => [topStrip(glass, "logit", "sign")],
  softmax: (glass) => [topStrip(glass, "probability", "share"), written(glass)],
};

function strip(glass, name) {
  const array = glass.get(name);
  if (!array) return null;
  const matrix = matrixOf(array);
  return shrunk(painted(matrix, "sign", typical(matrix)));
}

/** Twice the root mean square: so that one large number doesn't leave all others pale. */
function typical({ values }) {
  const sum = values.reduce((total, value) => total + value * value, 0);
  return 2 * Math.sqrt(sum / values.length) || 1;
}

function weightsStrip(glass, name, head) {
  const array = glass.get(name);
  if (!array) return null;
  const image = shrunk(painted(matrixOf(array, head), head, 1));
  image.style.setProperty("--head", headColour(head));
  image.classList.add("of-head");
  return image;
}

/** For each step its likeliest tokens, best first. */
function topStrip({ record }, name, scale) {
  const likeliest = ({ top }) => Array.from({ length: LIKELIEST }, (_, at) => top[at]?.[name] ?? 0);
  const values = Float32Array.from(record.steps.flatMap(likeliest));
  const matrix = { rows: record.steps.length, columns: LIKELIEST, values };
  return shrunk(painted(matrix, scale, scale === "share" ? 1 : largest(matrix)));
}

/** The tokens that are written, at the end of their rows. */
function written({ record }) {
  return make("span", { class: "row-names" }, pieceTexts(record.target.tokens).map((name) => make("span", { class: "row-name" }, make("bdi", {}, brief(name, 14)))));
}

/** An image with at most WIDEST columns, its rows as they are. */
function shrunk(image) {
  const width = Math.min(WIDEST, image.width);
  const canvas = make("canvas", { class: "data", width, height: image.height });
  const context = canvas.getContext("2d");
  context.imageSmoothingQuality = "high";
  context.drawImage(image, 0, 0, width, image.height);
  return canvas;
}
