// Finds the places of a text's pieces, in Unicode code points, as headway/text/subwords.py does.

import { SPACE_MARK, isSpace, visible, visibleSpans } from "./characters.js";

/** The mark of the highest combining class: every other mark goes before it in a normal form. */
const LAST_MARK = "\u0345";

/** [start, end] in the NFKC of what is visible of the text -> in the text, of all characters that were normalised together. */
export function originalPlaces(spans, text) {
  const shown = visible(text);
  if (shown.normalize("NFKC") !== shown) {
    const characters = [...shown];
    const together = []; // of each normalised character
    for (const [start, end] of normalizedTogether(characters)) {
      for (const _ of characters.slice(start, end).join("").normalize("NFKC")) together.push([start, end]);
    }
    spans = ofSpans(spans, together, characters.length);
  }
  return shown === text ? spans : ofSpans(spans, visibleSpans(text), [...text].length);
}

/** Places in a text whose characters stand for parts of another text -> places in that one, which is `length` long. */
function ofSpans(spans, parts, length) {
  const starts = [...parts.map(([start]) => start), length];
  return spans.map(([start, end]) => [starts[start], start < end ? parts[end - 1][1] : starts[start]]);
}

/** [start, end] of the shortest parts of the text whose normal forms make up that of the text. */
function normalizedTogether(characters) {
  const parts = [];
  let start = 0;
  for (let at = 1; at < characters.length; at += 1) {
    const character = characters[at];
    if (isMark(character)) continue;
    const part = characters.slice(start, at).join("");
    if ((part + character).normalize("NFKC") === part.normalize("NFKC") + character.normalize("NFKC")) {
      parts.push([start, at]);
      start = at;
    }
  }
  if (characters.length) parts.push([start, characters.length]);
  return parts;
}

/** Whether the character begins with one whose combining class isn't 0, that is, one that is put in order after others. */
function isMark(character) {
  const [first] = character.normalize("NFKD");
  return first === LAST_MARK || !(LAST_MARK + first).normalize("NFD").startsWith(LAST_MARK);
}

/** -> [{text, start, end}], without the white space at their ends; each part of one character has the whole of it. */
export function placedPieces(pieces, spans, text) {
  const characters = [...text];
  const placed = [];
  let endOfCharacter = 0;
  for (let at = pieces.length - 1; at >= 0; at -= 1) {
    let [start, end] = spans[at];
    if (start === end && pieces[at] !== SPACE_MARK) end = endOfCharacter;
    else endOfCharacter = end;
    while (start < end && isSpace(characters[start])) start += 1;
    while (start < end && isSpace(characters[end - 1])) end -= 1;
    placed.push({ text: pieces[at], start, end });
  }
  return placed.reverse();
}
