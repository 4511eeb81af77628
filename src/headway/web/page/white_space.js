// White space as Python has it, which splits text into words: with the separators U+001C to U+001F and U+0085 and without
// U+FEFF, other than in JavaScript.

const CODES = "\\t-\\r\\x1c- \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
/** For regular expressions: a character of white space, and one that is not. */
export const SPACE = `[${CODES}]`;
export const NO_SPACE = `[^${CODES}]`;

const SPACES_ONLY = new RegExp(`^${SPACE}*$`, "u");

/** Whether nothing but white space is in the text. */
export function isBlank(text) {
  return SPACES_ONLY.test(text);
}
