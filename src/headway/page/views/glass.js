// Entry of a server's page: loads the style, then shows the glass box.

import { mountBox } from "./box.js";

export { sentenceOf } from "./address.js";
export { shownIn } from "./box.js";

let styled = null;

/** Loads the style sheet from beside this module, then calls mountBox of box.js. -> a promise */
export async function mount(element, options) {
  styled ??= loadStyle();
  await styled;
  mountBox(element, options);
}

function loadStyle() {
  const link = document.createElement("link");
  link.rel = "stylesheet";
  link.href = new URL("./glass.css", import.meta.url).href;
  return new Promise((resolve) => {
    link.addEventListener("load", resolve);
    link.addEventListener("error", resolve);
    document.head.append(link);
  });
}
