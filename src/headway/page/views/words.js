// All that the glass box says, in English and Korean. `{name}` is replaced by a value.

import { english } from "./words_en.js";
import { korean } from "./words_ko.js";
import { needsEnglish } from "./words_needs_en.js";
import { needsKorean } from "./words_needs_ko.js";
import { trainingEnglish } from "./words_training_en.js";
import { trainingKorean } from "./words_training_ko.js";

const WORDS = { en: { ...english, ...needsEnglish, ...trainingEnglish }, ko: { ...korean, ...needsKorean, ...trainingKorean } };
export const languages = Object.keys(WORDS);

/** -> say(name, values): the text of that name. */
export function speaker(language) {
  const words = WORDS[language];
  return (name, values = {}) => {
    if (!Object.hasOwn(words, name)) throw new Error(`there is no text ${name}`);
    return words[name].replace(/\{(\w+)\}/gu, (whole, value) => (Object.hasOwn(values, value) ? `${values[value]}` : whole));
  };
}
