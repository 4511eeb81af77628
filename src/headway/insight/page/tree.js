// The beam as a tree: a column for each step, its candidates best first, lines from what they go on from.

import { make, makeSvg } from "./elements.js";
import { brief, loosePiece } from "./tokens.js";

const NODE = { width: 132, height: 24, gap: 6, between: 44 };
const TOP = 26;
const LONGEST = 9;

/** The columns of the tree from step `first` to `last`. */
export function beamTree({ record, say }, first, last) {
  const { steps, result } = record.beam;
  const columns = steps.slice(first, last + 1);
  const path = new Set(result ? chain(steps, ...result).map(([step, number]) => `${step} ${number}`) : []);
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
        const [fromX, fromY] = [x(now - 1) + NODE.width, y(candidate.parent) + NODE.height / 2];
        const [toX, toY] = [x(now), y(number) + NODE.height / 2];
        const half = (fromX + toX) / 2;
        const look = `edge ${candidate.fate}${won ? " won" : ""}`;
        edges.push(makeSvg("path", { d: `M${fromX} ${fromY}C${half} ${fromY} ${half} ${toY} ${toX} ${toY}`, class: look }));
      }
      nodes.push(node(candidate, x(now), y(number), won));
    });
  });
  const label = say("treeLabel", { first: first + 1, last: first + columns.length });
  return makeSvg("svg", { class: "tree", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label }, edges, nodes);
}

function node({ piece, score, fate }, x, y, won) {
  const sign = { kept: "", finished: "✓ ", dropped: "× " }[fate];
  const right = x + NODE.width - 8;
  return makeSvg(
    "g",
    { class: `node ${fate}${won ? " won" : ""}` },
    makeSvg("rect", { x, y, width: NODE.width, height: NODE.height, rx: 5 }),
    makeSvg("text", { x: x + 8, y: y + 16 }, `${sign}${brief(loosePiece(piece), LONGEST)}`),
    makeSvg("text", { x: right, y: y + 16, class: "score" }, score.toFixed(2).replace("-", "−")),
  );
}

/** What has finished until a step, best first by the score that ranks: {text, score, ranking, won}. */
export function finishedBy(record, last) {
  const { steps, result, length_penalty: penalty } = record.beam;
  return steps
    .slice(0, last + 1)
    .flatMap((candidates, step) => candidates.map((candidate, number) => ({ ...candidate, step, number })))
    .filter(({ fate }) => fate === "finished")
    .map(({ step, number, score }) => ({
      text: joined(chain(steps, step, number).slice(0, -1).map(([at, one]) => steps[at][one].piece)),
      score,
      ranking: score / ((5 + step + 1) / 6) ** penalty,
      won: result !== null && result[0] === step && result[1] === number,
    }))
    .sort((one, other) => other.ranking - one.ranking);
}

/** The signs of what is drawn. */
export function treeLegend(say) {
  return make(
    "ul",
    { class: "legend" },
    ["won", "kept", "finished", "dropped"].map((fate) => make("li", { class: fate }, make("span", { class: "sign", "aria-hidden": "true" }), say(`fate_${fate}`))),
  );
}

/** The candidates that a hypothesis went through: [step, number], the first first. */
function chain(steps, step, number) {
  const places = [];
  for (let at = number; step >= 0 && at !== null; step--) {
    places.unshift([step, at]);
    at = steps[step][at].parent;
  }
  return places;
}

function joined(pieces) {
  const spaced = pieces.some((piece) => piece.startsWith("▁"));
  return pieces.join(spaced ? "" : " ").replaceAll("▁", " ").trim();
}
