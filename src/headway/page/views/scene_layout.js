// Places the matrices of an attention: K^T above the scores and Q beside them, V above the output and the weights
// beside it, so that each number stands where its row and its column meet.

import { labelSpace } from "./names.js";

const GAP = 10;
const BETWEEN = 84; // the way from the scores to the weights
const TITLE = 26;
const LARGEST_CELL = 28;
const SMALL = 8; // numbers of a row; of such matrices the numbers are written
const NUMBER = { width: 62, least: 18, height: 30 };
const WIDE = 760;
const LOWEST_CELL = 6;

/** sizes: {n, m, d, v}: rows of Q, of K, columns of Q and of V; tall: the height that a wide scene has. -> {width, height, small, way, parts}: of each part
 * {left, top, width, height}, the sizes of a cell, and rows and columns. */
export function sceneLayout(sizes, room, tall, rowNames, columnNames) {
  const { n, m, d, v } = sizes;
  const small = Math.max(n, m, d, v) <= SMALL;
  const wide = room >= WIDE;
  const names = rowNames ? labelSpace(rowNames) : GAP;
  const above = columnNames ? labelSpace(columnNames) : 0;
  const groups = wide ? 2 : 1;
  const space = room - names - (wide ? BETWEEN : 0) - groups * GAP - 2;
  const side = small ? null : Math.min(Math.max(60, 7 * d), space * (wide ? 0.17 : 0.3));
  const numbers = small ? Math.min(NUMBER.width, space / (wide ? 2 * m + d + v : m + Math.max(d, v))) : null;
  const [queryWidth, valueWidth] = small ? [numbers, numbers] : [side / d, side / v];
  const most = wide ? Math.min(130, tall / 4) : 130;
  const written = wide ? Math.min(NUMBER.height, Math.max(NUMBER.least, (tall - 2 * TITLE - above - GAP) / (Math.max(d, m) + n))) : NUMBER.height;
  const keyHeight = small ? written : Math.min(Math.max(60, 4 * d), most) / d;
  const valueHeight = small ? written : Math.min(14, Math.max(3, most / m));
  const head = TITLE + Math.max(above + d * keyHeight, m * valueHeight) + GAP;
  const across = small ? numbers : Math.min(LARGEST_CELL, (space / groups - side) / m);
  const down = small ? written : wide ? Math.min(across, Math.max(LOWEST_CELL, (tall - head - TITLE) / n)) : across;
  const cell = { width: across, height: down };
  const part = (left, top, width, height, rows, columns) => ({ left, top, width, height, rows, columns });
  const first = names + d * queryWidth + GAP;
  const next = wide ? first + m * cell.width + BETWEEN : names;
  const below = wide ? 0 : head + n * cell.height + TITLE;
  const last = next + m * cell.width + GAP;
  const parts = {
    queries: part(names, head, queryWidth, cell.height, n, d),
    keys: part(first, head - GAP - d * keyHeight, cell.width, keyHeight, d, m),
    scores: part(first, head, cell.width, cell.height, n, m),
    weights: part(next, below + head, cell.width, cell.height, n, m),
    values: part(last, below + head - GAP - m * valueHeight, valueWidth, valueHeight, m, v),
    output: part(last, below + head, valueWidth, cell.height, n, v),
  };
  return {
    width: Math.ceil(Math.max(last + v * valueWidth, first + m * cell.width)) + 1,
    height: Math.ceil(below + head + n * cell.height + TITLE),
    small,
    wide,
    parts,
  };
}

/** The part and the cell at a place. -> {part, row, column} or null */
export function cellAt({ parts }, x, y) {
  for (const [part, { left, top, width, height, rows, columns }] of Object.entries(parts)) {
    const [row, column] = [Math.floor((y - top) / height), Math.floor((x - left) / width)];
    if (row >= 0 && row < rows && column >= 0 && column < columns) return { part, row, column };
  }
  return null;
}
