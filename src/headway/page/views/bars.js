// The likeliest tokens of a step as bars.

import { make } from "./elements.js";
import { decimal, percent } from "./numbers.js";
import { brief, loosePiece } from "./tokens.js";

/** top: as in a record's step; chosen: the id that was taken; logits: whether they are shown too. */
export function probabilityBars(top, chosen, say, logits = false) {
  return make(
    "ol",
    { class: logits ? "bars with-logits" : "bars" },
    top.map((one) => {
      const row = make(
        "li",
        { class: one.id === chosen ? "taken" : null },
        make("bdi", { class: "piece" }, brief(loosePiece(one.piece), 16)),
        logits ? make("span", { class: "number" }, decimal(one.logit)) : null,
        make("span", { class: "track" }, make("span", { class: "bar" })),
        make("span", { class: "number" }, percent(one.probability)),
        one.id === chosen ? make("span", { class: "unseen" }, say("taken")) : null,
      );
      row.style.setProperty("--share", (one.probability ?? 0).toFixed(4));
      return row;
    }),
  );
}
