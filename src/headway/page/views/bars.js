// The likeliest tokens of a step as bars.

import { make } from "./elements.js";
import { decimal, percent } from "./numbers.js";
import { brief, loosePiece } from "./tokens.js";

/** A row of bars; name: an element or a text; number: a text; share: the bar's length, of 1. look: a class; before, after: elements. */
export function barRow(name, number, share, { look = null, before = null, after = null } = {}) {
  return make(
    "li",
    { class: look, "--share": Math.min(1, share).toFixed(4) },
    make("bdi", { class: "piece" }, name),
    before,
    make("span", { class: "track" }, make("span", { class: "bar" })),
    make("span", { class: "number" }, number),
    after,
  );
}

/** top: as in a record's step; chosen: the id that was taken; logits: whether they are shown too. */
export function probabilityBars(top, chosen, say, logits = false) {
  return make(
    "ol",
    { class: logits ? "bars with-logits" : "bars" },
    top.map((one) => {
      const taken = one.id === chosen;
      const before = logits ? make("span", { class: "number" }, decimal(one.logit)) : null;
      return barRow(brief(loosePiece(one.piece), 16), percent(one.probability), one.probability ?? 0, { look: taken ? "taken" : null, before, after: taken ? make("span", { class: "unseen" }, say("taken")) : null });
    }),
  );
}
