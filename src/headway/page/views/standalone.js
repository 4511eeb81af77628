/* The glass box of one record in a page of its own: the record stands in the page, its arrays in groups that are parsed
 * when the first of them is asked for. There is no live model. */

import { mountBox } from "./box.js";

function parsed(id) {
  return JSON.parse(document.getElementById(id).textContent);
}

/** An object with all arrays by name, each group of them parsed on first use. */
function lazyArrays(groups) {
  const arrays = {};
  for (const [group, names] of Object.entries(groups)) {
    let entries = null;
    for (const name of names) {
      const get = () => (entries ??= parsed(`arrays.${group}`))[name];
      Object.defineProperty(arrays, name, { get, enumerable: true });
    }
  }
  return arrays;
}

const index = parsed("record");
const record = { ...index, arrays: lazyArrays(index.arrays) };
const language = document.documentElement.lang || (navigator.language.startsWith("ko") ? "ko" : "en");
mountBox(document.getElementById("glass"), { record, language, address: true });
