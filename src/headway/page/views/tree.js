// The beam as a tree: a column for each step, its candidates best first, lines from what they go on from.

import { make, makeSvg } from "./elements.js";
import { decimal } from "./numbers.js";
import { brief, loosePiece, visible } from "./tokens.js";

const NODE = { width: 132, height: 24, gap: 6, between: 44 };
const TOP = 26;
const LONGEST = 9;
const SIGNS = { kept: "", finished: "✓ ", dropped: "× " };

/** The columns of the tree from step `first` to `last`; point(text, candidate) is told which is pointed at. */
export function beamTree({ record, say }, first, last, point) {
  const { steps, result } = record.beam;
  const columns = steps.slice(first, last + 1);
  const path = wonPath(steps, result);
  const most = Math.max(...steps.map((step) => step.length));
  const width = columns.length * (NODE.width + NODE.between) - NODE.between + 2;
  const height = TOP + most * (NODE.height + NODE.gap);
  const x = (step) => 1 + (step - first) * (NODE.width + NODE.between);
  const y = (number) => TOP + number * (NODE.height + NODE.gap);
  const edges = [];
  const nodes = [];
  columns.forEach((step, at) => {
    const now = first + at;
    nodes.push(makeSvg("text", { x: x(now), y: 14, class: "heading" }, say("stepNumber", { step: now + 1 })));
    step.forEach((candidate, number) => {
      const won = path.has(`${now} ${number}`);
      if (now > first && candidate.parent !== null) {
        const from = [x(now - 1) + NODE.width, y(candidate.parent) + NODE.height / 2];
        edges.push(edge(from, [x(now), y(number) + NODE.height / 2], `edge ${candidate.fate}${won ? " won" : ""}`));
      }
      const text = hypothesis(steps, now, number);
      nodes.push(node(say, candidate, text, [x(now), y(number)], won, () => point(text, candidate)));
    });
  });
  const label = say("treeLabel", { first: first + 1, last: first + columns.length });
  return makeSvg("svg", { class: "tree", viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": label }, edges, nodes);
}

function edge([fromX, fromY], [toX, toY], look) {
  const half = (fromX + toX) / 2;
  return makeSvg("path", { d: `M${fromX} ${fromY}C${half} ${fromY} ${half} ${toY} ${toX} ${toY}`, class: look });
}

function node(say, candidate, text, [x, y], won, point) {
  const { piece, score, fate } = candidate;
  const whole = said(say, candidate, text, won);
  return makeSvg(
    "g",
    { class: `node ${fate}${won ? " won" : ""}`, role: "img", "aria-label": whole, pointerenter: point },
    makeSvg("title", {}, whole),
    makeSvg("rect", { x, y, width: NODE.width, height: NODE.height, rx: 5 }),
    makeSvg("text", { x: x + 8, y: y + 16 }, `${SIGNS[fate]}${brief(loosePiece(piece), LONGEST)}`),
    makeSvg("text", { x: x + NODE.width - 8, y: y + 16, class: "score" }, decimal(score)),
  );
}

/** The text of a hypothesis, from its first token to this one. */
function hypothesis(steps, step, number) {
  const pieces = [];
  for (let [at, one] = [step, number]; at >= 0 && one !== null; one = steps[at--][one].parent) pieces.unshift(steps[at][one].piece);
  return visible(pieces.join("").replaceAll("▁", " ").trim());
}

/** A candidate in words. */
function said(say, { piece, score, fate, parent }, text, won) {
  const from = parent === null ? "" : `: ${brief(text, 200)} ${say("goesOnFrom", { number: parent + 1 })}`;
  return say("candidate", { token: brief(loosePiece(piece), 60), score: decimal(score), fate: say(`fate_${won ? "won" : fate}`), from });
}

/** The same candidates as lists, in a part that opens. */
export function beamList(glass, first, last) {
  const { record, say } = glass;
  const { steps, result } = record.beam;
  const state = glass.kept("beamList", { open: false }, true);
  const path = wonPath(steps, result);
  const column = (candidates, step) => [
    make("h4", {}, say("stepNumber", { step: step + 1 })),
    make(
      "ol",
      { class: "candidates" },
      candidates.map((candidate, number) => make("li", {}, make("bdi", {}, said(say, candidate, hypothesis(steps, step, number), path.has(`${step} ${number}`))))),
    ),
  ];
  const lists = make("div", {});
  const details = make("details", { open: state.open }, make("summary", {}, say("treeAsList")), lists);
  const show = () => {
    state.open = details.open;
    lists.replaceChildren(...(details.open ? steps.slice(first, last + 1).flatMap((one, at) => column(one, first + at)) : []));
  };
  show();
  details.addEventListener("toggle", show);
  return details;
}

/** The signs of what is drawn. */
export function treeLegend(say) {
  return make(
    "ul",
    { class: "legend" },
    ["won", "kept", "finished", "dropped"].map((fate) => make("li", { class: fate }, make("span", { class: "sign", "aria-hidden": "true" }), say(`fate_${fate}`))),
  );
}

/** The finished hypothesis that became the translation; undefined where none did. */
export function winner({ finished, result }) {
  return finished?.find(({ step, number }) => `${[step, number]}` === `${result}`);
}

/** The candidates that the translation went through, each as "step number". */
function wonPath(steps, result) {
  const places = new Set();
  if (!result) return places;
  let [step, number] = result;
  while (step >= 0 && number !== null) {
    places.add(`${step} ${number}`);
    number = steps[step--][number].parent;
  }
  return places;
}
