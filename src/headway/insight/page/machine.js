// The second view: Figure 1 of the paper, drawn from the model's own configuration, downwards. Every block opens in place.

import { blockContents } from "./blocks.js";
import { choice, inTurn, make, makeSvg } from "./elements.js";

const ARC = 14;
let panels = 0;

export function machineView(glass) {
  const { record, say, languageName } = glass;
  const { config } = record.model;
  const wires = makeSvg("svg", { class: "wires", "aria-hidden": "true" });
  const column = (stack, title, language, blocks) =>
    make(
      "section",
      { class: `stack ${stack}` },
      make("h3", {}, title, make("span", { class: "quiet" }, language)),
      blocks,
    );
  const reads = languageName(record.model.source_language);
  const writes = languageName(record.model.target_language);
  const machine = make(
    "div",
    { class: "machine" },
    wires,
    column("encoder", say("encoder"), reads && say("reads", { language: reads }), [
      ...inputBlocks(glass, "encoder"),
      layers(glass, "encoder", config.encoder_layers),
      block(glass, "output", say("memoryBlock"), `${record.source.tokens.length} × ${config.d_model}`, { stack: "encoder" }, "memory"),
    ]),
    column("decoder", say("decoder"), writes && say("writes", { language: writes }), [
      ...inputBlocks(glass, "decoder"),
      layers(glass, "decoder", config.decoder_layers),
      config.norm === "pre" ? block(glass, "output", say("normBlock"), `${config.d_model}`, { stack: "decoder" }) : null,
      block(glass, "linear", say("linearBlock"), `${config.d_model} → ${config.target_vocab_size.toLocaleString()}`, { stack: "decoder" }),
      block(glass, "softmax", say("softmaxBlock"), say("tokensCount", { count: record.target.tokens.length }), { stack: "decoder" }),
    ]),
  );
  const watching = new ResizeObserver(() => drawWires(machine, wires));
  for (const stack of machine.querySelectorAll(".stack")) watching.observe(stack);
  return make("div", { class: "view" }, machine);
}

function inputBlocks(glass, stack) {
  const { record, say } = glass;
  const { config } = record.model;
  const tokens = stack === "encoder" ? record.source.tokens : record.target.tokens;
  const vocabulary = config[stack === "encoder" ? "source_vocab_size" : "target_vocab_size"];
  const root = Math.sqrt(config.d_model).toFixed(1).replace(".0", "");
  return [
    block(glass, "tokens", say(stack === "encoder" ? "sourceTokensBlock" : "targetTokensBlock"), say("tokensCount", { count: tokens.length }), { stack }),
    block(glass, "embedding", say("embeddingBlock"), `${vocabulary.toLocaleString()} × ${config.d_model}, × ${root}`, { stack }),
    block(glass, "positions", say("positionsBlock"), say(config.positions === "learned" ? "learned" : "sinusoidal"), { stack }),
  ];
}

/** The box of the paper that stands for N layers: one of them at a time, to be chosen. */
function layers(glass, stack, count) {
  if (!count) return null;
  const shown = { layer: 0 };
  const blocks = layerBlocks(glass, stack, shown);
  const names = Array.from({ length: count }, (_, layer) => [`${layer}`, `${layer + 1}`]);
  const change = (value) => {
    shown.layer = Number(value);
    inTurn(blocks, (one) => one.refresh());
  };
  return make(
    "div",
    { class: "layer" },
    choice(glass.say("layerOf", { count }), names, "0", change),
    make("div", { class: "layer-blocks" }, blocks),
  );
}

/** The blocks of the layer that is shown, whichever it is at that time. */
function layerBlocks(glass, stack, shown) {
  const { record, say } = glass;
  const { config } = record.model;
  const heads = stack === "encoder" ? config.num_heads : config.decoder_num_heads;
  const d_ff = stack === "encoder" ? config.d_ff : config.decoder_d_ff;
  const inside = (name, rest) => ({
    stack,
    ...rest,
    get sublayer() {
      return `${stack}.layers.${shown.layer}.${name}`;
    },
  });
  const attention = (name, kind, title) => {
    const sizes = say("headSizes", { heads, width: config.d_model / heads });
    return block(glass, "attention", title, sizes, inside(`${name}_attention`, { kind, place: name }), kind);
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
    if (config.norm === "pre") return [slim("norm", say("normBlock")), own, slim("add", say("addBlock"))];
    return [own, slim("addNorm", say("addNormBlock"))];
  });
}

/** A block of the figure: a button, and below it, once opened, what happens inside. */
function block(glass, kind, title, sizes, about, look = kind) {
  const panel = make("div", { class: "panel", id: `glass-panel-${panels++}`, hidden: true });
  const element = make("div", { class: `block ${look}` });
  element.refresh = () => panel.hidden || panel.replaceChildren(...blockContents[kind](glass, about));
  const button = make(
    "button",
    {
      type: "button",
      "aria-expanded": "false",
      "aria-controls": panel.id,
      "data-place": about.place ?? kind,
      click: () => {
        panel.hidden = !panel.hidden;
        button.setAttribute("aria-expanded", `${!panel.hidden}`);
        panel.replaceChildren();
        element.refresh();
      },
    },
    make("span", { class: "name" }, title),
    make("span", { class: "sizes" }, sizes),
  );
  element.append(make("h4", {}, button), panel);
  return element;
}

/** The residual connections beside the layers, and the memory's way to the decoder. */
function drawWires(machine, wires) {
  const frame = machine.getBoundingClientRect();
  const box = (element) => {
    const { left, right, top, bottom, height } = element.getBoundingClientRect();
    return { left: left - frame.left, right: right - frame.left, top: top - frame.top, bottom: bottom - frame.top, middle: top - frame.top + height / 2 };
  };
  const line = (d, look) => makeSvg("path", { d, class: look });
  const arrow = (x, y, right) => {
    const back = right ? -6 : 6;
    return makeSvg("path", { d: `M${x + back} ${y - 4}L${x} ${y}L${x + back} ${y + 4}`, class: "head" });
  };
  const found = [];
  for (const layer of machine.querySelectorAll(".layer-blocks")) {
    const blocks = [...layer.children];
    blocks.forEach((one, number) => {
      const before = blocks[number - 1];
      const start = box(one).left;
      if (before && one.querySelector("[data-place$=addNorm], [data-place$=add]")) {
        const first = before.previousElementSibling?.querySelector("[data-place$=norm]") ? before.previousElementSibling : before;
        const [from, to] = [box(first).top - 6, box(one.querySelector("button")).middle];
        found.push(line(`M${start + 24} ${from}H${start - ARC + 8}Q${start - ARC} ${from} ${start - ARC} ${from + 8}V${to - 8}Q${start - ARC} ${to} ${start - ARC + 8} ${to}H${start}`, "residual"));
        found.push(arrow(start, to, true));
      }
    });
  }
  const [memory, cross] = [machine.querySelector(".block.memory button"), machine.querySelector(".block.cross button")];
  if (memory && cross && box(cross).left > box(memory).right) {
    const [from, to] = [box(memory), box(cross)];
    const gutter = (from.right + machine.querySelector(".stack.decoder").getBoundingClientRect().left - frame.left) / 2;
    const turn = Math.sign(to.middle - from.middle) * 10;
    found.push(
      line(`M${from.right} ${from.middle}H${gutter - 10}Q${gutter} ${from.middle} ${gutter} ${from.middle + turn}V${to.middle - turn}Q${gutter} ${to.middle} ${gutter + 10} ${to.middle}H${to.left}`, "memory"),
      arrow(to.left, to.middle, true),
    );
  }
  wires.replaceChildren(...found);
}
