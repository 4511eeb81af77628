// Two heads, or one head in two sentences, side by side.

import { askingForm, make, select } from "./elements.js";
import { measuredHeads, shortLabel } from "./head_labels.js";
import { lookingPicture } from "./looking.js";
import { openNumbers } from "./numbers.js";
import { visible } from "./tokens.js";

/** What is compared, by the reader's choice: {head: [layer, head] or null, text: another sentence, record: its record or null,
 * asks: whether the sentence is still to be asked for, latest: an object for each time that it was}. */
export function comparedWith(glass) {
  return glass.kept("beside", { head: null, text: "", record: null, asks: false, latest: null }, true);
}

/** state: chosenHead(glass); pictureOf(glass, kind, layer, head) -> elements. -> {element, show()} */
export function sideBySide(glass, state, pictureOf) {
  const { record, say } = glass;
  const chosen = comparedWith(glass);
  const status = glass.status("beside");
  const heads = make("div", {});
  const compared = make("div", { class: "compared" });
  const show = () => {
    const { layers, heads: count } = record.attention[state.kind];
    if (chosen.head && (chosen.head[0] >= layers || chosen.head[1] >= count)) chosen.head = null;
    const named = measuredHeads(record, state.kind).map(({ layer, head, measures }) => [`${layer}.${head}`, `${layer + 1}·${head + 1} ${shortLabel(glass, state.kind, measures)}`]);
    heads.replaceChildren(
      select(say("besideHead"), [["", say("besideSame")], ...named], chosen.head?.join(".") ?? "", (value) => {
        chosen.head = value ? value.split(".").map(Number) : null;
        draw();
      }),
    );
    draw();
  };
  const draw = () => {
    const other = chosen.record ? glassOf(glass, chosen.record) : glass;
    const pairs = chosen.head || chosen.record ? [[glass, state.chosen], [other, chosen.head ?? state.chosen]] : [];
    compared.replaceChildren(...pairs.map(([one, head]) => column(one, state.kind, head, Boolean(chosen.record), pictureOf)));
  };
  const ask = async () => {
    const latest = {};
    Object.assign(chosen, { asks: false, latest });
    if (!chosen.text.trim()) glass.begin(status);
    const answer = chosen.text.trim() ? await glass.request(chosen.text, { arrays: "attention" }, status) : null;
    if (chosen.latest !== latest) return;
    if (!answer && !element.isConnected && chosen.text.trim()) {
      chosen.asks = true; // the box as it is drawn next asks again
      return;
    }
    chosen.record = answer;
    show();
  };
  const element = make(
    "section",
    { class: "card beside" },
    make("h3", {}, say("besideTitle")),
    make("div", { class: "controls" }, heads, glass.inspect ? askingForm(chosen, "glass-beside", say("besideSentence"), say("compare"), ask) : make("p", { class: "quiet" }, say("besideAlone"))),
    status,
    compared,
  );
  if (glass.inspect && chosen.asks) ask();
  return { element, show };
}

/** One side; whole: with the sentence's picture of Translate above the head. */
function column(glass, kind, [layer, head], whole, pictureOf) {
  const { source, target } = glass.record;
  const sentence = make("p", { class: "sentence-line" }, make("bdi", {}, visible(source.text)), " → ", make("bdi", {}, make("b", {}, visible(target.text))));
  return make("div", { class: "large" }, sentence, whole ? lookingPicture(glass) : null, pictureOf(glass, kind, layer, head));
}

/** The box with another record, whose rows aren't those of the other views. */
function glassOf(glass, record) {
  return { ...glass, record, get: openNumbers(record), chosen: { source: null, target: null }, choose: () => {} };
}
