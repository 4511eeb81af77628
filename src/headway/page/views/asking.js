// What a live model is asked, so that it computes once more what a record shows.

/** The sentence before any of its words were swapped. */
export function sourceAsItWas({ source }) {
  return source.original ?? source.text;
}

/** The options of the request: the edits, where there are any, and the translation, where the model was given one. */
export function asShown({ edits, target }) {
  return { ...(edits.length ? { edits } : {}), ...(target.given ? { translation: target.text } : {}) };
}
