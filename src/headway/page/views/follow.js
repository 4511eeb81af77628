// Follows one token: its row runs through the blocks, one after the other, and each says what it does to it.

import { make, sign } from "./elements.js";
import { chip, phrase } from "./phrases.js";
import { pieceTexts, readTexts } from "./tokens.js";

const PAUSE = 1100;

/** -> {button, told}: what begins and ends it, and the place of what is said */
export function follower(glass, flow, blocks) {
  const { record, say } = glass;
  const told = make("p", { class: "follow-told", role: "status" });
  const button = make("button", { type: "button", class: "primary follow" });
  let timer = null;
  const label = (name, image) => button.replaceChildren(sign(image), ` ${say(name)}`);
  const halt = () => {
    clearTimeout(timer);
    timer = null;
    flow.classList.remove("running");
    for (const { element } of blocks) element.classList.remove("reached", "here");
    label("follow", "play");
  };
  const reach = (at) => {
    const block = blocks[at];
    if (!block || !flow.isConnected) {
      halt();
      return;
    }
    blocks[at - 1]?.element.classList.remove("here");
    block.element.classList.add("reached", "here");
    const box = flow.parentElement;
    const { offsetLeft, offsetWidth } = block.element;
    if (box.scrollWidth > box.clientWidth) box.scrollLeft = offsetLeft - (box.clientWidth - offsetWidth) / 2;
    told.replaceChildren(...sayingOf(block));
    timer = setTimeout(() => reach(at + 1), PAUSE);
  };
  const sayingOf = ({ kind, about: { stack, kind: attention } }) => {
    const row = glass.chosen[stack === "encoder" ? "source" : "target"] ?? 0; // the reader may have let go of it
    const token = chip(stack === "encoder" ? pieceTexts(record.source.tokens)[row] : readTexts(record)[row], stack === "encoder" ? "answering" : "asking");
    const written = chip(pieceTexts(record.target.tokens)[glass.chosen.target ?? 0], "written");
    const name = { attention: `flow_attention_${attention}`, output: `flow_output_${stack}` }[kind] ?? `flow_${kind}`;
    return phrase(say, name, { token, written, activation: record.model.config.activation });
  };
  const begin = () => {
    if (timer) {
      halt();
      return;
    }
    for (const side of ["source", "target"]) if (glass.chosen[side] === null) glass.choose(side, 0);
    flow.classList.add("running");
    label("pause", "pause");
    reach(0);
  };
  label("follow", "play");
  button.addEventListener("click", begin);
  return { button, told };
}
