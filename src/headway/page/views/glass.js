// Where a server's page comes in: loads the style, then shows the glass box.

import { mountBox } from "./box.js";

let styled = null;

/** As mountBox in box.js; the style sheet is loaded first, from beside this module. -> a promise */
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
