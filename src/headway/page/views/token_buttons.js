// The tokens of the translation as buttons: one of them is looked at.

import { make } from "./elements.js";
import { brief, pieceTexts } from "./tokens.js";

/** -> {element, refresh} */
export function tokenButtons(glass) {
  const { record, say } = glass;
  const buttons = pieceTexts(record.target.tokens).map((name, step) =>
    make("button", { type: "button", class: "light", click: () => glass.choose("target", step) }, make("bdi", {}, brief(name, 24))),
  );
  const refresh = () => {
    buttons.forEach((button, step) => {
      const chosen = (glass.chosen.target ?? 0) === step;
      button.classList.toggle("chosen", chosen);
      button.setAttribute("aria-pressed", `${chosen}`);
    });
  };
  refresh();
  return { element: make("div", { class: "lights tokens-chosen", role: "group", "aria-label": say("target") }, buttons), refresh };
}
