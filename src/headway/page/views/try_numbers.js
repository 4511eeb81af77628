// Attention on small matrices that the reader types, or on a head of the model, each number explained.

import { attend, misfit, multiply, readMatrix } from "./arithmetic.js";
import { attentionOfHead, sublayerOf } from "./attention_of_head.js";
import { ARROWS, choice, formula, make, select } from "./elements.js";
import { HIDDEN, rowOf, signed } from "./numbers.js";
import { attentionScene } from "./scene.js";

const LARGEST = 8;
const EXAMPLE = {
  x: "1 0 1 0\n0 2 0 2\n1 1 1 1",
  W_Q: "1 0 1\n1 0 0\n0 0 1\n0 1 1",
  W_K: "0 0 1\n1 1 0\n0 1 0\n1 1 0",
  W_V: "0 2 0\n0 3 0\n1 0 3\n1 1 0",
  Q: "1 0 2\n2 2 2\n2 1 3",
  K: "0 1 1\n4 4 0\n2 3 1",
  V: "1 2 3\n2 8 0\n2 6 3",
};
const INPUTS = { weights: ["x", "W_Q", "W_K", "W_V"], direct: ["Q", "K", "V"] };

export function tryNumbersView(glass) {
  const { say } = glass;
  const kind = Object.keys(glass.record.attention).at(-1);
  const first = { mode: "weights", scaling: true, lookAhead: false, texts: { ...EXAMPLE }, head: { kind, layer: 0, head: 0 } };
  const state = glass.kept("numbers", first, true);
  const inputs = make("div", { class: "inputs" });
  const picture = make("div", {});
  const result = make("div", { class: "stages worked" });
  const problem = make("p", { class: "problem", role: "alert" });
  let scene = null;
  const show = (attention) => {
    if (scene) scene.load(attention);
    else picture.replaceChildren((scene = attentionScene(glass, attention, say("ownScene"))).element);
  };
  const work = () => {
    const real = state.mode === "head";
    const { matrices, names, wrong } = real ? readHead(glass, state) : readInputs(say, state);
    problem.textContent = wrong ?? "";
    picture.classList.toggle("stale", Boolean(wrong)); // what stands there is of the numbers before
    result.classList.toggle("stale", Boolean(wrong));
    if (wrong) return;
    const made = queriesKeysValues(state, matrices);
    show(sceneOf(made, state, names));
    result.replaceChildren(...(real ? [] : workedSteps(say, state, matrices, made)));
  };
  const boxes = {};
  const begin = () => {
    for (const [name, box] of Object.entries(boxes)) box.checked = state[name];
    reset.hidden = state.mode === "head";
    inputs.replaceChildren(...(state.mode === "head" ? headChoosers(glass, state, work, beginAgain) : inputBoxes(state, work)));
    work();
  };
  const beginAgain = () => {
    begin();
    inputs.querySelector("select").focus();
  };
  const startAgain = () => {
    Object.assign(state, { scaling: true, lookAhead: false, texts: { ...EXAMPLE } });
    begin();
  };
  const reset = make("button", { type: "button", click: startAgain }, say("resetExample"));
  const bar = settings(glass, state, boxes, work, begin);
  bar.append(reset, make("p", { class: "quiet" }, say("typeHint", { largest: LARGEST })));
  begin();
  return make("div", { class: "view" }, bar, inputs, problem, picture, result);
}

function queriesKeysValues({ mode }, matrices) {
  if (mode !== "weights") return matrices;
  const [x, ...weights] = matrices;
  return weights.map((weight) => multiply(x, weight));
}

/** The data of scene.js from lists of rows. names: {rowNames, columnNames, scale, side}, of a head of the model */
function sceneOf([queries, keys, values], state, names) {
  const found = attend(queries, keys, values, state);
  const matrix = (rows) => ({ rows: rows.length, columns: rows[0].length, values: Float32Array.from(rows.flat(), (value) => (value === -Infinity ? HIDDEN : value)) });
  const [products, scaled, masked, weights, output] = [found.scores, found.scaled, found.masked, found.weights, found.output].map(matrix);
  const [q, k, v] = [queries, keys, values].map(matrix);
  return { queries: q, keys: k, values: v, products, scaled, masked, weights, output, width: queries[0].length, scaling: state.scaling, scale: "share", rowNames: null, columnNames: null, ...names };
}

/** The rows of a head of the model. -> {matrices, names, wrong} */
function readHead(glass, { head: { kind, layer, head } }) {
  const found = attentionOfHead(glass, sublayerOf(glass.record, kind, layer), kind, head);
  if (!found) return { wrong: glass.say("noNumbers") };
  const rows = (matrix) => Array.from({ length: matrix.rows }, (_, row) => [...rowOf(matrix, row)]);
  const { rowNames, columnNames, scale, side } = found;
  return { matrices: [found.queries, found.keys, found.values].map(rows), names: { rowNames, columnNames, scale, side }, wrong: null };
}

/** Choosers of a head: its kind, layer and number; begin() is called where there are others to choose from. */
function headChoosers({ record, say }, state, work, begin) {
  const about = record.attention[state.head.kind];
  const numbers = (count) => Array.from({ length: count }, (_, at) => [`${at}`, `${at + 1}`]);
  const kinds = Object.keys(record.attention).map((kind) => [kind, say(`kind_${kind}`)]);
  const chooser = (name, label, options) =>
    select(label, options, `${state.head[name]}`, (value) => {
      state.head[name] = Number(value);
      work();
    });
  const kind = select(say("kindOfAttention"), kinds, state.head.kind, (value) => {
    Object.assign(state.head, { kind: value, layer: 0, head: 0 });
    state.lookAhead = value === "decoder";
    begin();
  });
  return [kind, chooser("layer", say("layerOf", { count: about.layers }), numbers(about.layers)), chooser("head", say("headOf", { heads: about.heads }), numbers(about.heads))];
}

/** Choosers of the computation, of which `boxes` gets those to tick; work() is called where the numbers stay, begin() where others are asked for. */
function settings({ say, record }, state, boxes, work, begin) {
  const toggle = (name) => {
    const box = (boxes[name] = make("input", {
      type: "checkbox",
      change: () => {
        state[name] = box.checked;
        work();
      },
    }));
    return make("label", { class: "check" }, box, say(name));
  };
  const starts = [["weights", say("fromWeights")], ["direct", say("fromQkv")]];
  if (Object.keys(record.attention).length) starts.push(["head", say("fromHead")]);
  const start = (mode) => {
    state.mode = mode;
    if (mode === "head") state.lookAhead = state.head.kind === "decoder";
    begin();
  };
  return make(
    "div",
    { class: "controls" },
    choice(say("startFrom"), starts, state.mode, start),
    toggle("scaling"),
    toggle("lookAhead"),
  );
}

function inputBoxes(state, work) {
  return INPUTS[state.mode].map((name) => {
    const box = make("textarea", {
      rows: Math.max(3, state.texts[name].split("\n").length),
      cols: 10,
      spellcheck: "false",
      inputmode: "text",
      dir: "ltr",
      input: () => {
        state.texts[name] = box.value;
        work();
      },
    });
    box.value = state.texts[name];
    return make("label", {}, formula(name.replace(/_(.)/u, "^{$1}")), box);
  });
}

/** -> {matrices, wrong}; wrong: what is to be mended, or null */
function readInputs(say, state) {
  const names = INPUTS[state.mode];
  const read = names.map((name) => readMatrix(state.texts[name], LARGEST));
  const bad = read.findIndex((one) => one.problem);
  if (bad >= 0) return { matrices: [], wrong: `${plain(names[bad])}: ${say(...read[bad].problem)}` };
  const matrices = read.map((one) => one.matrix);
  const mismatch = misfit(names, matrices);
  return { matrices, wrong: mismatch ? say(mismatch[0], plainValues(mismatch[1])) : null };
}

const plain = (name) => name.replace("_", "");
const plainValues = (values) => Object.fromEntries(Object.entries(values).map(([name, value]) => [name, typeof value === "string" ? plain(value) : value]));

function workedSteps(say, state, [x, ...weights], made) {
  if (state.mode === "direct") return attentionSteps(say, state, ...made);
  const tables = ["Q", "K", "V"].map((letter, at) =>
    numberTable(made[at], `${letter} = x W^{${letter}}`, (row, column) => products(x[row], weights[at].map((line) => line[column])), { caption: true }),
  );
  return [step(say, "workProjections", null, tables), ...attentionSteps(say, state, ...made)];
}

function attentionSteps(say, state, queries, keys, values) {
  const found = attend(queries, keys, values, state);
  const width = queries[0].length;
  const one = (title, equation, table) => step(say, title, equation, [table]);
  const division = (row, column) => `${short(found.scores[row][column])} / ${short(Math.sqrt(width))}`;
  const softmax = (row, column) => {
    const largest = Math.max(...found.masked[row]);
    const sum = found.masked[row].reduce((total, value) => total + Math.exp(value - largest), 0);
    return `e^(${short(found.masked[row][column])} − ${bracketed(largest)}) / ${short(sum)}`;
  };
  return [
    one("workScores", "Q K^{T}", numberTable(found.scores, "Q K^{T}", (row, column) => products(queries[row], keys[column]))),
    state.scaling
      ? one("workScaling", `s = Q K^{T} / √${width}`, numberTable(found.scaled, "s", division))
      : one("workUnscaled", "s = Q K^{T}", numberTable(found.scaled, "s", (row, column) => short(found.scores[row][column]))),
    state.lookAhead
      ? one("workMask", "s_{ij} = −∞, j > i", numberTable(found.masked, "s", (row, column) => say(column > row ? "hiddenLater" : "seenEarlier")))
      : null,
    one("workSoftmax", 'A_{ij} = "exp"(s_{ij} − m_{i}) / Σ_{k} "exp"(s_{ik} − m_{i})', numberTable(found.weights, "A", softmax, { digits: 5 })),
    one("workOutput", "A V", numberTable(found.output, "A V", (row, column) => products(found.weights[row], values.map((line) => line[column])))),
  ].filter((part) => part);
}

function step(say, name, equation, tables) {
  return make(
    "section",
    { class: "stage" },
    make("h3", {}, say(`${name}Title`)),
    equation ? make("p", { class: "equation" }, formula(equation)) : null,
    make("p", {}, say(`${name}Text`)),
    make("div", { class: "tables" }, tables),
  );
}

/** A matrix as a table; the number under the pointer or the cursor says how it came to be. */
function numberTable(matrix, title, explain, { digits = 4, caption = false } = {}) {
  const readout = make("output", { class: "readout", "aria-live": "polite" });
  const cells = matrix.map((row) => row.map((value) => make("td", { tabindex: -1 }, short(value, digits))));
  let at = null;
  const show = (row, column) => {
    if (at) cells[at[0]][at[1]].classList.remove("at");
    at = [row, column];
    cells[row][column].classList.add("at");
    readout.replaceChildren(make("span", {}, explain(row, column)), make("b", {}, ` = ${short(matrix[row][column], digits)}`));
  };
  const table = make(
    "table",
    {
      class: "numbers",
      "aria-label": title.replace(/[{}^_"]/gu, ""),
      keydown: (event) => {
        const by = ARROWS[event.key];
        if (!by || !at) return;
        event.preventDefault();
        cells[at[0] + by[0]]?.[at[1] + by[1]]?.focus();
      },
    },
    caption ? make("caption", {}, formula(title)) : null,
    make("tbody", {}, cells.map((row) => make("tr", {}, row))),
  );
  cells.forEach((row, y) =>
    row.forEach((cell, x) => {
      cell.addEventListener("pointerenter", () => show(y, x));
      cell.addEventListener("focus", () => show(y, x));
    }),
  );
  cells[0][0].tabIndex = 0;
  show(0, 0);
  return make("figure", { class: "number-table" }, table, readout);
}

function products(left, right) {
  return left.map((value, at) => `${short(value)}·${short(right[at])}`).join(" + ");
}

function short(value, digits = 4) {
  if (value === -Infinity) return "−∞";
  const size = Math.abs(value);
  if (size >= 1e6 || (size > 0 && size < 1e-4)) return signed(value.toExponential(2));
  return signed(Number.isInteger(value) ? `${value}` : value.toFixed(digits));
}

const bracketed = (value) => (value < 0 ? `(${short(value)})` : short(value));
