// The sentences and the words of a text, as the browser finds them.

/** The sentences with letters or numbers: {text, start}, start being the place of their first character. */
export function sentencesOf(text, language) {
  const parts = [...segmenter(language, "sentence").segment(text)];
  return parts
    .filter(({ segment }) => /[\p{L}\p{N}]/u.test(segment))
    .map(({ segment, index }) => ({ text: segment.trim(), start: index + segment.length - segment.trimStart().length }));
}

/** All of a text in parts: words, and what stands between them. */
export function wordsOf(text, language) {
  return [...segmenter(language, "word").segment(text)].map(({ segment, index }) => ({ text: segment, start: index }));
}

function segmenter(language, granularity) {
  try {
    return new Intl.Segmenter(language?.replaceAll("_", "-"), { granularity });
  } catch {
    return new Intl.Segmenter(undefined, { granularity }); // the code is none of a language
  }
}
