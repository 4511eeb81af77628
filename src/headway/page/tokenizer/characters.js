// The characters of a text that a model sees: no invisible ones, and one space for white space of any kind. As
// headway/text/characters.py. White space is Python's, with the separators U+001C to U+001F and U+0085.

const CODES = "\\t-\\r\\x1c- \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
/** For regular expressions: a character of white space, and one that is not. */
export const SPACE = `[${CODES}]`;
export const NO_SPACE = `[^${CODES}]`;

/** Stands for a space in a piece. */
export const SPACE_MARK = "▁";

/** Words, by Python's white space. */
export const WORDS = new RegExp(`${NO_SPACE}+`, "gu");

const DROPPED =
  "\\x00-\\x08\\x0e-\\x1b\\x7f-\\x84\\x86-\\x9f" + // controls that are no white space
  "\\xad\\u061c\\u180e\\u200b\\u200e\\u200f\\u202a-\\u202e\\u2060-\\u2064\\u2066-\\u206f\\ufeff\\ufff9-\\ufffb";
/** For regular expressions: white space and invisible characters, as many as there are. */
export const UNSEEN = `[${CODES}${DROPPED}]*`;

const ALONE = "\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200c\\u200d\\u2800\\u3164\\ufe00-\\ufe0f\\uffa0\\u{e0000}-\\u{e0fff}";
const BLANK = new RegExp(`^[${CODES}${DROPPED}${ALONE}]*$`, "u");
const INVISIBLE = new RegExp(`(?<!${NO_SPACE})[${DROPPED}${ALONE}]+(?!${NO_SPACE})|[${DROPPED}]+`, "gu");
const SPACES = new RegExp(`${SPACE}+`, "gu");
const ONE_SPACE = new RegExp(`^${SPACE}$`, "u");

/** Whether the text shows nothing: it is empty, or has only white space and invisible characters. */
export function isBlank(text) {
  return BLANK.test(text);
}

export function isSpace(character) {
  return ONE_SPACE.test(character);
}

/** In code points. */
export function lengthOf(text) {
  return [...text].length;
}

/** The text as a model sees it. Invisible characters are dropped. Then each run of white space is one space, unless it is
 * of plain spaces, which the tokenizer treats as it was trained to. */
export function visible(text) {
  return text.replace(INVISIBLE, "").replace(SPACES, (run) => (/^ +$/u.test(run) ? run : " "));
}

/** -> for each character of `visible(text)` the part of the text that it stands for, [start, end] in code points */
export function visibleSpans(text) {
  const spans = [];
  let run = []; // the places of white space that are waiting for its end
  let isPlain = true;
  const endRun = () => {
    if (isPlain) for (const place of run) spans.push([place, place + 1]);
    else spans.push([run[0], run.at(-1) + 1]);
    [run, isPlain] = [[], true];
  };
  const dropped = [...text.matchAll(INVISIBLE)].map((run) => [run.index, run.index + run[0].length]); // in units
  let unit = 0;
  [...text].forEach((character, place) => {
    const start = unit;
    unit += character.length;
    while (dropped.length && dropped[0][1] <= start) dropped.shift();
    if (dropped.length && dropped[0][0] <= start) return;
    if (isSpace(character)) {
      run.push(place);
      isPlain &&= character === " ";
      return;
    }
    endRun();
    spans.push([place, place + 1]);
  });
  endRun();
  return spans;
}
