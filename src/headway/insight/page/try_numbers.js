// The sixth view: attention on small matrices that the reader types, each number explained.

import { attend, misfit, multiply, readMatrix } from "./arithmetic.js";
import { choice, formula, make } from "./elements.js";

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

export function tryNumbersView({ say }) {
  const state = { mode: "weights", scaling: true, lookAhead: false, texts: { ...EXAMPLE } };
  const inputs = make("div", { class: "inputs" });
  const result = make("div", { class: "stages worked" });
  const problem = make("p", { class: "problem", role: "alert" });
  const work = () => {
    const names = INPUTS[state.mode];
    const read = names.map((name) => readMatrix(state.texts[name], LARGEST));
    const bad = read.findIndex((one) => one.problem);
    const wrong = bad >= 0 ? say(...read[bad].problem) : null;
    const matrices = read.map((one) => one.matrix);
    const unfit = wrong ? null : misfit(names, matrices);
    problem.textContent = wrong ? `${plain(names[bad])}: ${wrong}` : unfit ? say(unfit[0], plainValues(unfit[1])) : "";
    if (problem.textContent) result.replaceChildren();
    else result.replaceChildren(...workedSteps(say, state, matrices));
  };
  const showInputs = () => {
    inputs.replaceChildren(
      ...INPUTS[state.mode].map((name) => {
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
      }),
    );
  };
  const toggle = (name, checked) => {
    const box = make("input", {
      type: "checkbox",
      change: () => {
        state[name] = box.checked;
        work();
      },
    });
    box.checked = checked;
    return make("label", { class: "check" }, box, say(name));
  };
  const reset = () => {
    state.texts = { ...EXAMPLE };
    showInputs();
    work();
  };
  showInputs();
  work();
  return make(
    "div",
    { class: "view" },
    make(
      "div",
      { class: "controls" },
      choice(say("startFrom"), [["weights", say("fromWeights")], ["direct", say("fromQkv")]], state.mode, (mode) => {
        state.mode = mode;
        showInputs();
        work();
      }),
      toggle("scaling", true),
      toggle("lookAhead", false),
      make("button", { type: "button", click: reset }, say("resetExample")),
    ),
    make("p", { class: "quiet" }, say("typeHint", { largest: LARGEST })),
    inputs,
    problem,
    result,
  );
}

const plain = (name) => name.replace("_", "");
const plainValues = (values) => Object.fromEntries(Object.entries(values).map(([name, value]) => [name, typeof value === "string" ? plain(value) : value]));

function workedSteps(say, state, matrices) {
  const steps = [];
  let [queries, keys, values] = matrices;
  if (state.mode === "weights") {
    const [x, ...weights] = matrices;
    [queries, keys, values] = weights.map((weight) => multiply(x, weight));
    steps.push(
      step(
        say,
        "workProjections",
        null,
        [["Q", weights[0], queries], ["K", weights[1], keys], ["V", weights[2], values]].map(([letter, weight, product]) =>
          numberTable(product, `${letter} = x W^{${letter}}`, (row, column) => products(x[row], weight.map((line) => line[column])), { caption: true }),
        ),
      ),
    );
  }
  const found = attend(queries, keys, values, state);
  const root = Math.sqrt(queries[0].length);
  steps.push(
    step(say, "workScores", "Q K^{T}", [numberTable(found.scores, "Q K^{T}", (row, column) => products(queries[row], keys[column]))]),
    step(say, state.scaling ? "workScaling" : "workUnscaled", state.scaling ? `Q K^{T} / √${queries[0].length}` : "Q K^{T}", [
      numberTable(found.scaled, "s", (row, column) =>
        state.scaling ? `${short(found.scores[row][column])} / ${short(root)}` : short(found.scores[row][column]),
      ),
    ]),
  );
  if (state.lookAhead) {
    steps.push(
      step(say, "workMask", "s_{ij} = −∞, j > i", [
        numberTable(found.masked, "s", (row, column) => say(column > row ? "hiddenLater" : "seenEarlier")),
      ]),
    );
  }
  steps.push(
    step(say, "workSoftmax", 'A = "softmax"(s)', [
      numberTable(found.weights, "A", (row, column) => {
        const sum = found.masked[row].reduce((total, value) => total + Math.exp(value), 0);
        return `e^${short(found.masked[row][column])} / ${short(sum)}`;
      }, { digits: 5 }),
    ]),
    step(say, "workOutput", "A V", [
      numberTable(found.output, "A V", (row, column) => products(found.weights[row], values.map((line) => line[column]))),
    ]),
  );
  return steps;
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
        const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
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
  const text = Number.isInteger(value) && Math.abs(value) < 1e6 ? `${value}` : Math.abs(value) >= 1e6 || (value !== 0 && Math.abs(value) < 1e-4) ? value.toExponential(2) : value.toFixed(digits);
  return text.replace("-", "−");
}
