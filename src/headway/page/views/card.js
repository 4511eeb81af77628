// The model's card, written in the part of Markdown that cards have: headings, tables, lists, code and paragraphs.

import { make } from "./elements.js";

/** The card as elements. */
export function cardElements(text) {
  return text.split(/\n\s*\n/u).filter((block) => block.trim()).map(blockOf);
}

function blockOf(block) {
  const lines = block.replace(/^\n+|\s+$/gu, "").split("\n");
  const all = (pattern) => lines.every((line) => pattern.test(line));
  if (/^#+ /u.test(block)) return make("h3", {}, inline(block.replace(/^#+ /u, "")));
  if (all(/^ {4}|^\t/u)) return make("pre", { tabindex: 0 }, lines.map((line) => line.trim()).join("\n"));
  if (all(/^\|/u)) return make("table", {}, make("tbody", {}, lines.filter((line) => /[^|\s:-]/u.test(line)).map(rowOf)));
  if (/^[-*] /u.test(lines[0]) && all(/^[-*] |^ /u)) return make("ul", {}, block.split(/^[-*] /mu).slice(1).map((item) => make("li", {}, inline(item))));
  return make("p", {}, inline(block));
}

function rowOf(line) {
  const cells = line.split(/(?<!\\)\|/u).slice(1, -1).map((cell) => inline(cell.trim().replaceAll("\\|", "|")));
  return make("tr", {}, cells.map((cell, at) => (at ? make("td", {}, cell) : make("th", { scope: "row" }, cell))));
}

/** Code and bold text; of a link its text. */
function inline(text) {
  return text.replace(/\[([^\]]*)\]\([^)]*\)/gu, "$1").split(/(`[^`]+`|\*\*[^*]+\*\*)/u).map((part) => {
    if (part.startsWith("`")) return make("code", {}, part.slice(1, -1));
    return part.startsWith("**") ? make("b", {}, part.slice(2, -2)) : part;
  });
}
