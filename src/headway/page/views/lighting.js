// Tokens to point at: the row or the column of a token is lit in all small pictures at once.

import { choice, make } from "./elements.js";
import { brief } from "./tokens.js";

/** grid: the element around the pictures; rowNames, columnNames: their tokens. -> elements */
export function tokenLights({ say, kept }, grid, rowNames, columnNames) {
  const sides = { row: rowNames, column: columnNames };
  const state = kept("lighting", { side: "row" }, true);
  const tokens = make("p", { class: "lights", dir: "auto", pointerleave: () => light(null) });
  const light = (number) => {
    const count = sides[state.side].length;
    if (number === null) delete grid.dataset.lit;
    else {
      grid.dataset.lit = state.side;
      grid.style.setProperty("--before", `${(100 * number) / count}%`);
      grid.style.setProperty("--after", `${(100 * (count - number - 1)) / count}%`);
    }
    [...tokens.children].forEach((one, at) => one.classList.toggle("chosen", at === number));
  };
  const fill = () => {
    light(null);
    tokens.replaceChildren(
      ...sides[state.side].map((name, number) =>
        make("button", { type: "button", class: "light", pointerenter: () => light(number), focus: () => light(number), blur: () => light(null) }, make("bdi", {}, brief(name, 20))),
      ),
    );
  };
  fill();
  const options = [["row", say("lightRows")], ["column", say("lightColumns")]];
  return make("div", { class: "lighting" }, choice(say("lightTitle"), options, state.side, (side) => {
    state.side = side;
    fill();
  }), tokens);
}
