// The second view: Figure 1 of the paper, drawn from the model's own configuration, downwards. Every block opens in place.

import { blockContents } from "./blocks.js";
import { choice, inTurn, make, makeSvg, select } from "./elements.js";
import { rowsOf } from "./stages.js";
import { brief, languageOf, pieceTexts } from "./tokens.js";

const ARC = 14;
let panels = 0;

export function machineView(glass) {
  const { record, say, languageName } = glass;
  const { config } = record.model;
  const wires = makeSvg("svg", { class: "wires", "aria-hidden": "true" });
  const column = (stack, title, language, parts) =>
    make("section", { class: `stack ${stack}` }, make("h3", {}, title, make("span", { class: "quiet" }, language)), parts);
  const reads = languageName(languageOf(record, "source"));
  const writes = languageName(languageOf(record, "target"));
  const one = (stack, kind, title, sizes, look) => block(glass, kind, title, sizes, { stack }, look).element;
  const machine = make(
    "div",
    { class: "machine" },
    wires,
    column("encoder", say("encoder"), reads && say("reads", { language: reads }), [
      ...inputBlocks(glass, "encoder"),
      layers(glass, "encoder", config.encoder_layers),
      one("encoder", "output", say("memoryBlock"), `${record.source.tokens.length} × ${config.d_model}`, "memory"),
    ]),
    column("decoder", say("decoder"), writes && say("writes", { language: writes }), [
      ...inputBlocks(glass, "decoder"),
      layers(glass, "decoder", config.decoder_layers),
      config.norm === "pre" ? one("decoder", "output", say("normBlock"), `${config.d_model}`) : null,
      one("decoder", "linear", say("linearBlock"), `${config.d_model} → ${config.target_vocab_size.toLocaleString()}`),
      one("decoder", "softmax", say(record.target.given ? "softmaxGivenBlock" : "softmaxBlock"), say("tokensCount", { count: record.target.tokens.length })),
    ]),
  );
  const watching = new ResizeObserver(() => drawWires(machine, wires));
  for (const stack of machine.querySelectorAll(".stack")) watching.observe(stack);
  return make("div", { class: "view" }, tokenChoosers(glass), machine);
}

/** What is open and chosen in the figure; it stays for every record of the model. */
function openIn(glass) {
  return glass.kept("machine", { blocks: new Set(), layers: { encoder: 0, decoder: 0 }, heads: {} }, true);
}

/** A piece of the source and a step, to stand out in every picture. */
function tokenChoosers(glass) {
  const { record, say } = glass;
  const written = pieceTexts(record.target.tokens);
  const names = { source: rowsOf(glass, "encoder").rowNames, target: rowsOf(glass, "decoder").rowNames.map((read, step) => `${brief(read)} → ${brief(written[step])}`) };
  const choosers = Object.entries(names).map(([side, all]) => {
    const options = [["", say("none")], ...all.map((name, row) => [`${row}`, `${row + 1}  ${brief(name, 28)}`])];
    const chooser = select(say(`choose_${side}`), options, null, (value) => glass.choose(side, value === "" ? null : Number(value)));
    const show = () => (chooser.querySelector("select").value = `${glass.chosen[side] ?? ""}`);
    show();
    chooser.setAttribute("data-rows", side);
    chooser.addEventListener("chosen", show);
    return chooser;
  });
  return make("div", { class: "controls" }, choosers, make("p", { class: "quiet" }, say("chooseHint")));
}

function inputBlocks(glass, stack) {
  const { record, say } = glass;
  const { config } = record.model;
  const tokens = stack === "encoder" ? record.source.tokens : record.target.tokens;
  const vocabulary = config[stack === "encoder" ? "source_vocab_size" : "target_vocab_size"];
  const root = Math.sqrt(config.d_model).toFixed(1).replace(".0", "");
  const kinds = [
    ["tokens", say(stack === "encoder" ? "sourceTokensBlock" : "targetTokensBlock"), say("tokensCount", { count: tokens.length })],
    ["embedding", say("embeddingBlock"), `${vocabulary.toLocaleString()} × ${config.d_model}, × ${root}`],
    ["positions", say("positionsBlock"), say(config.positions === "learned" ? "learned" : "sinusoidal")],
  ];
  return kinds.map(([kind, title, sizes]) => block(glass, kind, title, sizes, { stack }).element);
}

/** The box of the paper that stands for N layers: one of them at a time, to be chosen. */
function layers(glass, stack, count) {
  if (!count) return null;
  const shown = openIn(glass).layers;
  shown[stack] = Math.min(shown[stack], count - 1);
  const blocks = layerBlocks(glass, stack);
  const names = Array.from({ length: count }, (_, layer) => [`${layer}`, `${layer + 1}`]);
  const change = (value) => {
    shown[stack] = Number(value);
    inTurn(blocks, (one) => one.refresh());
  };
  return make(
    "div",
    { class: "layer" },
    choice(glass.say("layerOf", { count }), names, `${shown[stack]}`, change),
    make("div", { class: "layer-blocks" }, blocks.map((one) => one.element)),
  );
}

/** The blocks of the layer that is shown, whichever it is at that time. */
function layerBlocks(glass, stack) {
  const { record, say } = glass;
  const { config } = record.model;
  const open = openIn(glass);
  const heads = stack === "encoder" ? config.num_heads : config.decoder_num_heads;
  const d_ff = stack === "encoder" ? config.d_ff : config.decoder_d_ff;
  const inside = (name, rest) => ({
    stack,
    ...rest,
    get sublayer() {
      return `${stack}.layers.${open.layers[stack]}.${name}`;
    },
  });
  const attention = (name, kind, title) => {
    const sizes = say("headSizes", { heads, width: config.d_model / heads });
    const shown = (open.heads[kind] ??= { head: 0, step: 0 });
    return block(glass, "attention", title, sizes, inside(`${name}_attention`, { kind, place: name, shown }), kind);
  };
  const steps = [["self", attention("self", stack, say(stack === "encoder" ? "selfBlock" : "maskedBlock"))]];
  if (stack === "decoder" && record.attention.cross) steps.push(["cross", attention("cross", "cross", say("crossBlock"))]);
  const sizes = `${config.d_model} → ${d_ff.toLocaleString()} → ${config.d_model}`;
  const feedForward = inside("feed_forward", { place: "feed_forward" });
  steps.push(["feed_forward", block(glass, "feedForward", say("feedForwardBlock"), sizes, feedForward)]);
  return steps.flatMap(([name, own]) => {
    const slim = (kind, title) => {
      const about = inside(`${name}_residual`, { place: `${name} ${kind}` });
      return block(glass, kind, title, `${config.d_model}`, about, "slim");
    };
    const parts = config.norm === "pre" ? [slim("norm", say("normBlock")), own, slim("add", say("addBlock"))] : [own, slim("addNorm", say("addNormBlock"))];
    parts[0].element.dataset.residual = "from";
    parts.at(-1).element.dataset.residual = "to";
    return parts;
  });
}

/** A block of the figure: a button, and below it, once opened, what happens inside. -> {element, refresh} */
function block(glass, kind, title, sizes, about, look = kind) {
  const open = openIn(glass).blocks;
  const place = about.place ?? kind;
  const name = `${about.stack} ${place}`;
  const panel = make("div", { class: "panel", id: `glass-panel-${panels++}` });
  const refresh = () => panel.hidden || panel.replaceChildren(...blockContents[kind](glass, about));
  const show = () => {
    panel.hidden = !open.has(name);
    button.setAttribute("aria-expanded", `${!panel.hidden}`);
    panel.replaceChildren();
    refresh();
  };
  const turn = () => {
    if (!open.delete(name)) open.add(name);
    show();
  };
  const button = make(
    "button",
    { type: "button", "aria-controls": panel.id, "data-place": place, click: turn },
    make("span", { class: "name" }, title),
    make("span", { class: "sizes" }, sizes),
  );
  show();
  return { element: make("div", { class: `block ${look}` }, make("h4", {}, button), panel), refresh };
}

/** The residual connections beside the layers, and the memory's way to the decoder. */
function drawWires(machine, wires) {
  const frame = machine.getBoundingClientRect();
  const box = (element) => {
    const { left, right, top, bottom, height } = element.getBoundingClientRect();
    return { left: left - frame.left, right: right - frame.left, top: top - frame.top, bottom: bottom - frame.top, middle: top - frame.top + height / 2 };
  };
  wires.replaceChildren(...residualWires(machine, box), ...memoryWire(machine, box));
}

const line = (d, look) => makeSvg("path", { d, class: look });
const arrow = (x, y) => makeSvg("path", { d: `M${x - 6} ${y - 4}L${x} ${y}L${x - 6} ${y + 4}`, class: "tip" });

function residualWires(machine, box) {
  const [starts, ends] = ["from", "to"].map((end) => [...machine.querySelectorAll(`[data-residual=${end}]`)]);
  return ends.flatMap((end, at) => {
    const { left } = box(end);
    const [from, to] = [box(starts[at]).top - 6, box(end.querySelector("button")).middle];
    const way = `M${left + 24} ${from}H${left - ARC + 8}Q${left - ARC} ${from} ${left - ARC} ${from + 8}V${to - 8}Q${left - ARC} ${to} ${left - ARC + 8} ${to}H${left}`;
    return [line(way, "residual"), arrow(left, to)];
  });
}

/** Where the stacks stand side by side. */
function memoryWire(machine, box) {
  const [memory, cross] = [machine.querySelector(".block.memory button"), machine.querySelector(".block.cross button")];
  if (!memory || !cross || box(cross).left <= box(memory).right) return [];
  const [from, to] = [box(memory), box(cross)];
  const gutter = (from.right + box(machine.querySelector(".stack.decoder")).left) / 2;
  const turn = Math.sign(to.middle - from.middle) * 10;
  const way = `M${from.right} ${from.middle}H${gutter - 10}Q${gutter} ${from.middle} ${gutter} ${from.middle + turn}V${to.middle - turn}Q${gutter} ${to.middle} ${gutter + 10} ${to.middle}H${to.left}`;
  return [line(way, "memory"), arrow(to.left, to.middle)];
}
