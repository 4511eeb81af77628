// The wires of the machine: from each block to the next, around a sub-layer to where its input is added again, and the
// memory's way to the decoder. Each begins at a block and ends at one, with an arrowhead.

import { makeSvg } from "./elements.js";

const ROUND = 7;
const ABOVE = 13;

export function drawWires(flow, wires) {
  if (!flow.clientWidth) return;
  const frame = flow.getBoundingClientRect();
  const box = (element) => {
    const { left, right, top, bottom } = element.getBoundingClientRect();
    return { left: left - frame.left, right: right - frame.left, top: top - frame.top, bottom: bottom - frame.top, x: (left + right) / 2 - frame.left, y: (top + bottom) / 2 - frame.top };
  };
  const stacks = [...flow.querySelectorAll(".stack")].map((stack) => [...stack.querySelectorAll(".block")]);
  wires.replaceChildren(...stacks.flatMap((blocks) => [...straight(blocks, box), ...residuals(blocks, box)]), ...memory(flow, box));
}

const line = (d, look) => makeSvg("path", { d, class: look });
const toRight = (x, y) => makeSvg("path", { d: `M${x - 6} ${y - 4}L${x} ${y}L${x - 6} ${y + 4}Z`, class: "tip" });
const downwards = (x, y, look = "") => makeSvg("path", { d: `M${x - 4} ${y - 6}L${x} ${y}L${x + 4} ${y - 6}Z`, class: `tip ${look}`.trim() });

function straight(blocks, box) {
  return blocks.slice(1).flatMap((block, at) => {
    const [from, to] = [box(blocks[at]), box(block)];
    return [line(`M${from.right} ${from.y}H${to.left - 4}`, "straight"), toRight(to.left - 1, from.y)];
  });
}

function residuals(blocks, box) {
  const starts = blocks.filter((one) => one.dataset.residual === "from");
  const ends = blocks.filter((one) => one.dataset.residual === "to");
  return ends.flatMap((end, at) => {
    const [from, to] = [box(blocks[blocks.indexOf(starts[at]) - 1]), box(end)];
    const y = to.top - ABOVE;
    const x = from.x + 8; // beside where the wire before it ends
    return [line(`M${x} ${from.top}V${y + ROUND}Q${x} ${y} ${x + ROUND} ${y}H${to.x - ROUND}Q${to.x} ${y} ${to.x} ${y + ROUND}V${to.top - 4}`, "residual"), downwards(to.x, to.top - 1)];
  });
}

function memory(flow, box) {
  const [start, end] = [flow.querySelector(".block.memory"), flow.querySelector(".block.cross")];
  if (!start || !end) return [];
  const [from, to] = [box(start), box(end)];
  const y = box(flow.querySelector(".stack.decoder")).top - 6;
  const turn = Math.sign(to.x - from.x) * ROUND;
  const way = `M${from.x} ${from.bottom}V${y - ROUND}Q${from.x} ${y} ${from.x + turn} ${y}H${to.x - turn}Q${to.x} ${y} ${to.x} ${y + ROUND}V${to.top - 4}`;
  return [line(way, "memory"), downwards(to.x, to.top - 1, "memory")];
}
