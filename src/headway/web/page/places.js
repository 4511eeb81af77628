// Where the pieces of a text stand in it, in Unicode code points. As headway/text/subwords.py.

import { isBlank } from "./white_space.js";

const SPACE_MARK = "▁";
/** The mark of the highest combining class: every other mark goes before it in a normal form. */
const LAST_MARK = "\u0345";

/** [start, end] in the text's NFKC -> in the text: of the characters that were normalised together. */
export function originalPlaces(spans, text) {
  if (text.normalize("NFKC") === text) return spans;
  const characters = [...text];
  const starts = []; // of each normalised character
  const ends = [];
  for (const [start, end] of normalizedTogether(characters)) {
    const part = characters.slice(start, end).join("").normalize("NFKC");
    for (const _ of part) {
      starts.push(start);
      ends.push(end);
    }
  }
  starts.push(characters.length);
  return spans.map(([start, end]) => [starts[start], start < end ? ends[end - 1] : starts[start]]);
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
export function placedPieces(pieces, spans, text, shift) {
  const characters = [...text];
  const placed = [];
  let endOfCharacter = 0;
  for (let at = pieces.length - 1; at >= 0; at -= 1) {
    let [start, end] = spans[at];
    if (start === end && pieces[at] !== SPACE_MARK) end = endOfCharacter;
    else endOfCharacter = end;
    while (start < end && isBlank(characters[start])) start += 1;
    while (start < end && isBlank(characters[end - 1])) end -= 1;
    placed.push({ text: pieces[at], start: start + shift, end: end + shift });
  }
  return placed.reverse();
}
