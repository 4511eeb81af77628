// Shows the model's confidence in each word of a translation, and whether the translation depends on its source.

import { sentencesOf, wordsOf } from "./sentences.js";

const [MOST_SENTENCES, LONGEST] = [4, 150]; // and characters of one: the server analyses no text of many tokens

/** The words of a translation as elements, each of which can be marked later without a change of the text. */
export function wordElements(text, language) {
  return wordsOf(text, language).map(({ text: word, start }) => {
    const element = document.createElement("span");
    element.textContent = word;
    return { element, start, end: start + word.length, isWord: /[\p{L}\p{N}]/u.test(word) };
  });
}

/**
 * Asks for each sentence what the model makes of its translation. inspect(text, options): gives a record.
 * -> {shares: by the number of a word of `words` (of wordElements), its probability; detached: whether a sentence may have
 * little to do with its source}, or null where the sentences of both sides can't be paired.
 */
export async function judge({ text, source, translation, target, words, inspect }) {
  const [read, written] = [sentencesOf(text, source), sentencesOf(translation, target)];
  if (!read.length || read.length !== written.length) return null;
  const shares = new Map();
  let detached = false;
  for (const [number, sentence] of written.slice(0, MOST_SENTENCES).entries()) {
    if (Math.max(sentence.text.length, read[number].text.length) > LONGEST) continue;
    const record = await judged(() => inspect(read[number].text, { translation: sentence.text, arrays: "none", analyses: ["erasure"] }));
    if (!record) continue;
    detached ||= record.analyses.erasure.detached;
    for (const token of placed(record, sentence)) {
      for (const [place, word] of words.entries()) {
        if (!word.isWord || token.start >= word.end || token.end <= word.start) continue;
        shares.set(place, (shares.get(place) ?? 1) * token.share);
      }
    }
  }
  return { shares, detached };
}

/** The answer of ask(); null if the server finds the sentence too long. */
async function judged(ask) {
  try {
    return await ask();
  } catch (problem) {
    if (problem.status !== 400) throw problem;
    return null;
  }
}

/** The tokens that stand for characters: where these are in the whole translation, and how likely the token was. A record
 * counts characters, the page halves of surrogate pairs. */
function placed({ target, steps }, { text, start }) {
  const places = [start];
  for (const character of text) places.push(places.at(-1) + character.length);
  return target.tokens.flatMap(({ start: first, end }, step) =>
    end > first ? [{ start: places[first], end: places[end], share: Math.exp(steps[step].log_probability) }] : [],
  );
}
