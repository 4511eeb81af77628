// Figure 1 of the paper, drawn from the model's own configuration, from left to right: above the encoder,
// below the decoder. Every block shows its data as it flows, a row a token, and opens below both.

import { blockContents } from "./blocks.js";
import { choice, make, makeSvg, select, whenDrawn } from "./elements.js";
import { follower } from "./follow.js";
import { whole } from "./numbers.js";
import { allParameters, parametersOf } from "./parameters.js";
import { rowsOf } from "./stages.js";
import { termed } from "./terms.js";
import { refreshStrips, tile, tokenTile } from "./tiles.js";
import { brief, languageOf, pieceTexts, readTexts } from "./tokens.js";
import { drawWires } from "./wires.js";

const isNarrow = () => window.matchMedia("(max-width: 48rem)").matches; // as in machine.css: there the blocks stand one below the other

export function machineView(glass) {
  const { record, say, languageName } = glass;
  const state = openIn(glass);
  const wires = makeSvg("svg", { class: "wires", "aria-hidden": "true" });
  const panel = make("section", { class: "panel", id: "glass-panel", hidden: true });
  const blocks = [];
  const show = () => {
    const open = blocks.find(({ name }) => name === state.block);
    for (const one of blocks) one.button.setAttribute("aria-expanded", `${one === open}`);
    panel.hidden = !open;
    machine.classList.toggle("open", Boolean(open));
    panel.replaceChildren(...(open ? panelOf(glass, open, blocks, turn) : []));
    place();
  };
  /** Puts the panel below both stacks, or, on a narrow screen, below its own block. */
  const place = () => {
    const before = (isNarrow() && blocks.find(({ name }) => name === state.block)?.element) || machine.firstChild;
    if (before.nextSibling !== panel) before.after(panel); // who is in it stays there
  };
  const turn = (name, way = null) => {
    state.block = state.block === name ? null : name;
    show();
    if (way) (panel.querySelector(`[data-way="${way}"]:enabled`) ?? blocks.find((one) => one.name === name).button).focus({ preventScroll: true });
    const shown = isNarrow() ? blocks.find((one) => one.name === name).element : machine;
    if (state.block) whenDrawn(() => shown.scrollIntoView());
  };
  const add = (stack, kind, title, sizes, about, look = kind) => {
    const place = about.place ?? kind;
    const name = `${stack} ${place}`;
    const block = { name, kind, title, sizes, about: inside(glass, stack, about), ...tile(title, sizes, { look, place }, () => turn(name)) };
    blocks.push(block);
    return block.element;
  };
  const refresh = (stack) => {
    refreshStrips(glass, flow, blocks.filter((one) => one.about.stack === stack));
    show();
  };
  const stacks = ["encoder", "decoder"].map((stack) => {
    const language = languageName(languageOf(record, stack === "encoder" ? "source" : "target"));
    const parts = [...inputTiles(glass, stack, add), layerBox(glass, stack, add, refresh), ...outputTiles(glass, stack, add)];
    return stackOf(glass, stack, language && say(stack === "encoder" ? "reads" : "writes", { language }), parts);
  });
  if (!blocks.some(({ name }) => name === state.block)) state.block = null; // an address may name any
  const flow = make("div", { class: "flow" }, wires, stacks);
  const follow = follower(glass, flow, blocks);
  follow.told.append(...termed(say, say("lead_machine", { parameters: whole(allParameters(record.model.config)) })));
  const machine = make("div", { class: "machine" }, make("div", { class: "flow-box" }, make("div", { class: "scroll" }, flow)));
  new ResizeObserver(() => {
    place();
    drawWires(flow, wires);
  }).observe(flow);
  refreshStrips(glass, flow, blocks);
  show();
  return make("div", { class: "view" }, make("div", { class: "controls" }, follow.button, tokenChoosers(glass), follow.told), machine);
}

/** The open and chosen parts of the figure, kept for all records of the model. */
export function openIn(glass) {
  return glass.kept("machine", { block: null, layers: { encoder: 0, decoder: 0 }, heads: {} }, true);
}

/** A block's own data; the sub-layer is that of the layer shown at the time. */
function inside(glass, stack, { sublayer, ...about }) {
  const { layers } = openIn(glass);
  const full = { ...about, stack };
  if (sublayer) Object.defineProperty(full, "sublayer", { get: () => `${stack}.layers.${layers[stack]}.${sublayer}`, enumerable: true });
  return full;
}

/** The head of what a block holds, and its stages. */
function panelOf(glass, block, blocks, turn) {
  const { say } = glass;
  const at = blocks.indexOf(block);
  const parameters = parametersOf(glass.record.model.config, block.about.stack, block.kind);
  const button = (name, other, text) => make("button", { type: "button", disabled: !other, "data-way": name, "aria-label": say(name), title: say(name), click: () => turn(other.name, name) }, text);
  return [
    make(
      "header",
      {},
      make("h4", {}, block.title, make("span", { class: "quiet" }, ` ${say(block.about.stack)} · ${block.sizes}${parameters ? ` · ${say("parametersCount", { count: whole(parameters) })}` : ""}`)),
      make("span", { class: "tools" }, button("blockBefore", blocks[at - 1], "←"), button("blockAfter", blocks[at + 1], "→"), button("closeBlock", block, "✕")),
    ),
    ...blockContents[block.kind](glass, block.about),
  ];
}

/** A token of the source and a step, to stand out in every picture. */
function tokenChoosers(glass) {
  const { record, say } = glass;
  const written = pieceTexts(record.target.tokens);
  const names = { source: pieceTexts(record.source.tokens), target: readTexts(record).map((read, step) => `${brief(read)} → ${brief(written[step])}`) };
  return Object.entries(names).map(([side, all]) => {
    const options = [["", say("none")], ...all.map((name, row) => [`${row}`, `${row + 1}  ${brief(name, 28)}`])];
    const chooser = select(say(`choose_${side}`), options, null, (value) => glass.choose(side, value === "" ? null : Number(value)));
    const show = () => (chooser.querySelector("select").value = `${glass.chosen[side] ?? ""}`);
    show();
    chooser.setAttribute("data-rows", side);
    chooser.addEventListener("chosen", show);
    return chooser;
  });
}

/** A row of the figure. Its tokens are rows of every block in it. */
function stackOf(glass, stack, quiet, parts) {
  const { rowNames, side } = rowsOf(glass, stack);
  const element = make(
    "section",
    { class: `stack ${stack}`, "data-rows": side, "--rows": rowNames.length, chosen: () => show() },
    make("h3", {}, glass.say(stack), make("span", { class: "quiet" }, quiet)),
    make("div", { class: "tiles" }, parts),
  );
  const show = () => {
    const row = glass.chosen[side];
    element.classList.toggle("following", row !== null);
    element.style.setProperty("--row", row ?? 0);
  };
  show();
  return element;
}

function inputTiles(glass, stack, add) {
  const { record, say } = glass;
  const { config } = record.model;
  const tokens = stack === "encoder" ? pieceTexts(record.source.tokens) : readTexts(record);
  const vocabulary = config[stack === "encoder" ? "source_vocab_size" : "target_vocab_size"];
  const root = Math.sqrt(config.d_model).toFixed(1).replace(".0", "");
  const first = add(stack, "tokens", say(stack === "encoder" ? "sourceTokensBlock" : "targetTokensBlock"), say("tokensCount", { count: tokens.length }), {});
  tokenTile(glass, first, tokens, stack === "encoder" ? "source" : "target");
  return [
    first,
    add(stack, "embedding", say("embeddingBlock"), `${whole(vocabulary)} × ${config.d_model}, × ${root}`, {}),
    add(stack, "positions", say("positionsBlock"), say(config.positions === "learned" ? "learned" : "sinusoidal"), {}),
  ];
}

/** The box of the paper that stands for N layers: one of them at a time, to be chosen. */
function layerBox(glass, stack, add, refresh) {
  const { record, say } = glass;
  const { config } = record.model;
  const count = config[`${stack}_layers`];
  if (!count) return null;
  const shown = openIn(glass).layers;
  shown[stack] = Math.min(shown[stack], count - 1);
  const names = Array.from({ length: count }, (_, layer) => [`${layer}`, `${layer + 1}`]);
  const change = (value) => {
    shown[stack] = Number(value);
    refresh(stack);
  };
  return make(
    "div",
    { class: "layer" },
    choice(say("layerOf", { count }), names, `${shown[stack]}`, change),
    make("div", { class: "layer-blocks" }, layerTiles(glass, stack, add)),
  );
}

function layerTiles(glass, stack, add) {
  const { record, say } = glass;
  const { config } = record.model;
  const { heads: shownHeads } = openIn(glass);
  const heads = stack === "encoder" ? config.num_heads : config.decoder_num_heads;
  const d_ff = stack === "encoder" ? config.d_ff : config.decoder_d_ff;
  const attention = (name, kind, title) => {
    const shown = (shownHeads[kind] ??= { head: 0, step: 0 });
    return add(stack, "attention", title, say("headSizes", { heads, width: config.d_model / heads }), { sublayer: `${name}_attention`, kind, place: name, shown }, `${kind} wide`);
  };
  const kinds = { self: () => attention("self", stack, say(stack === "encoder" ? "selfBlock" : "maskedBlock")), cross: () => attention("cross", "cross", say("crossBlock")) };
  kinds.feed_forward = () => add(stack, "feedForward", say("feedForwardBlock"), `${config.d_model} → ${whole(d_ff)} → ${config.d_model}`, { sublayer: "feed_forward", place: "feed_forward" }, "feedForward wide");
  const names = stack === "decoder" && record.attention.cross ? ["self", "cross", "feed_forward"] : ["self", "feed_forward"];
  return names.flatMap((name) => {
    const slim = (kind, title) => add(stack, kind, title, `${config.d_model}`, { sublayer: `${name}_residual`, place: `${name} ${kind}` }, "slim");
    const parts = config.norm === "pre" ? [slim("norm", say("normBlock")), kinds[name](), slim("add", say("addBlock"))] : [kinds[name](), slim("addNorm", say("addNormBlock"))];
    parts[0].dataset.residual = "from";
    parts.at(-1).dataset.residual = "to";
    return parts;
  });
}

function outputTiles(glass, stack, add) {
  const { record, say } = glass;
  const { config } = record.model;
  if (stack === "encoder") return [add(stack, "output", say("memoryBlock"), `${record.source.tokens.length} × ${config.d_model}`, {}, "memory")];
  return [
    config.norm === "pre" ? add(stack, "output", say("normBlock"), `${config.d_model}`, {}, "slim") : null,
    add(stack, "linear", say("linearBlock"), `${config.d_model} → ${whole(config.target_vocab_size)}`, {}),
    add(stack, "softmax", say(record.target.given ? "softmaxGivenBlock" : "softmaxBlock"), say("tokensCount", { count: record.target.tokens.length }), {}, "softmax wide"),
  ];
}
