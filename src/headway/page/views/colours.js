// Scales of colours that the colour-blind can tell apart: one hue from pale to deep for shares, blue and orange for signs;
// and a colour for each head.

import { HIDDEN } from "./numbers.js";

const SHARE = {
  light: ["#ffffff", "#d6e4f5", "#8fb8e6", "#3a7cc9", "#144a8c", "#07274f"],
  dark: ["#1b1e23", "#1f3a5c", "#28619e", "#4c93dc", "#93c4fa", "#e4f1ff"],
};
const SIGN = {
  light: ["#8a3b00", "#d9822b", "#f6d3ac", "#ffffff", "#b5d2f2", "#3a7cc9", "#0b3a75"],
  dark: ["#ffc48a", "#d9822b", "#6b3f14", "#1b1e23", "#1f4675", "#4c93dc", "#b9dbff"],
};
const HEADS = {
  light: ["#1d5bb5", "#b4530a", "#1a7f37", "#7c3aed", "#c0262d", "#0e7490", "#b5127b", "#7a6a00"],
  dark: ["#85b4ff", "#f2a65a", "#6fd08c", "#c3a2ff", "#ff938a", "#6cd3e6", "#ff8fd2", "#d9c64f"],
};
const tables = new Map();
let theme = null;

/** "light" or "dark", as the reader has chosen; null: as the system has it. */
export function useTheme(name) {
  theme = name;
}

function shade() {
  return isDark(theme) ? "dark" : "light";
}

/** theme: as of `useTheme`. */
export function isDark(theme) {
  return theme ? theme === "dark" : window.matchMedia("(prefers-color-scheme: dark)").matches;
}

/** The colour of a head, the same in all views. */
export function headColour(head) {
  return HEADS[shade()][head % HEADS.light.length];
}

/** scale: "share" for numbers from 0 on, "sign" for numbers about 0, the number of a head for its shares.
 * -> 256 colours, three bytes each. */
function colourTable(scale) {
  const key = `${scale} ${shade()}`;
  if (!tables.has(key)) tables.set(key, interpolated(typeof scale === "number" ? headStops(scale) : { share: SHARE, sign: SIGN }[scale][shade()]));
  return tables.get(key);
}

/** From blank to the colour of the head, and on to one that stands out more. */
function headStops(head) {
  const [blank, end, middle] = shade() === "light" ? ["#ffffff", "#000000", 0.35] : ["#1b1e23", "#ffffff", 0.4];
  const colour = headColour(head);
  return [blank, mixed(blank, colour, middle), colour, mixed(colour, end, 0.45)];
}

function mixed(one, other, share) {
  const part = (text, at) => parseInt(text.slice(at, at + 2), 16);
  const hex = [1, 3, 5].map((at) => Math.round(part(one, at) * (1 - share) + part(other, at) * share).toString(16).padStart(2, "0"));
  return `#${hex.join("")}`;
}

/** A canvas with a pixel for each number. limit: the number that has the last colour; low: of a share, the first. */
export function painted({ rows, columns, values }, scale, limit, low = 0) {
  const canvas = document.createElement("canvas");
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  const pixels = new Uint32Array(image.data.buffer);
  const table = colourTable(scale);
  const [middle, factor] = scale === "sign" ? [127.5, 127.5 / limit] : [(-255 * low) / (limit - low || 1), 255 / (limit - low || 1)];
  for (let at = 0; at < pixels.length; at++) {
    const place = Math.max(0, Math.min(255, Math.round(middle + values[at] * factor)));
    if (values[at] > HIDDEN) pixels[at] = table[place]; // what a mask hides stays blank, to be hatched
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

/** All colours of a scale in a row, for a legend. */
export function colourStrip(scale) {
  const steps = 64;
  const values = Float32Array.from({ length: steps }, (_, at) => at / (steps - 1)).map((value) => (scale === "sign" ? 2 * value - 1 : value));
  return Object.assign(painted({ rows: 1, columns: steps, values }, scale, 1), { className: "strip" });
}

/** The largest size of a number in a matrix; what a mask hides is left out. */
export function largest({ values }) {
  let most = 0;
  for (const value of values) {
    const size = Math.abs(value);
    if (size > most && size < -HIDDEN) most = size;
  }
  return most || 1;
}

/** Little-endian RGBA, as a canvas has it. */
function interpolated(stops) {
  const colours = stops.map((stop) => [1, 3, 5].map((at) => parseInt(stop.slice(at, at + 2), 16)));
  return Uint32Array.from({ length: 256 }, (_, place) => {
    const exact = (place / 255) * (colours.length - 1);
    const below = Math.min(Math.floor(exact), colours.length - 2);
    const [red, green, blue] = colours[below].map((one, at) =>
      Math.round(one + (exact - below) * (colours[below + 1][at] - one)),
    );
    return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
  });
}
