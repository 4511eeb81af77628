// Normalises a text as sentencepiece's normalizer.cc does: rules of the model, one space for several, `▁` for spaces.

import { Beginnings, characterEnd } from "./beginnings.js";
import { SPACE_MARK, lengthOf } from "./characters.js";

export class Normalizer {
  constructor(description) {
    this.description = description;
    this.rules = new Beginnings(Object.entries(description.rules));
    this.kept = new Beginnings(description.user_defined.map((id) => [description.pieces[id], true]));
    this.space = description.escape_whitespaces ? SPACE_MARK : " ";
  }

  /** -> {text, places}: the text that is split, and for each unit of it, and its end, the code point of `text` it is from */
  normalize(text) {
    const { add_dummy_prefix, remove_extra_whitespaces, treat_whitespace_as_suffix } = this.description;
    let start = 0; // in units
    let place = 0; // in code points
    let [replacement, end] = this.#prefix(text, 0);
    const next = () => {
      place += lengthOf(text.slice(start, end));
      start = end;
      [replacement, end] = this.#prefix(text, start);
    };
    if (remove_extra_whitespaces) while (start < text.length && replacement === " ") next();
    if (start === text.length) return { text: "", places: [0] };

    let normalized = "";
    const places = [];
    const add = (string) => {
      normalized += string;
      for (let unit = 0; unit < string.length; unit += 1) places.push(place);
    };
    if (add_dummy_prefix && !treat_whitespace_as_suffix) add(this.space);
    let afterSpace = remove_extra_whitespaces;
    for (; start < text.length; next()) {
      const string = afterSpace ? replacement.replace(/^ +/u, "") : replacement;
      add(string.replaceAll(" ", this.space));
      if (string) afterSpace = remove_extra_whitespaces && string.endsWith(" ");
    }
    while (remove_extra_whitespaces && normalized.endsWith(this.space)) {
      normalized = normalized.slice(0, -1);
      place = places.pop();
    }
    if (add_dummy_prefix && treat_whitespace_as_suffix) add(this.space);
    places.push(place);
    return { text: normalized, places };
  }

  /** -> [what replaces the beginning of text[start:], where it ends] */
  #prefix(text, start) {
    if (start === text.length) return ["", start];
    const kept = this.kept.longest(text, start);
    if (kept) return [text.slice(start, kept[0]), kept[0]];
    const rule = this.rules.longest(text, start);
    if (rule) return [rule[1], rule[0]];
    const end = characterEnd(text, start);
    return [text.slice(start, end), end];
  }
}
