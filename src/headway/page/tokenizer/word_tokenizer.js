// Whole words: what stands between spaces, and a vocabulary of them. As headway/text/words.py.

import { WORDS, isBlank, lengthOf, visible } from "./characters.js";

/** Words are what stands between spaces, in NFC; a word that isn't in the vocabulary is <unk>. */
export class WordTokenizer {
  constructor(description) {
    this.kind = "word";
    this.vocabulary = description.pieces;
    this.targetTags = description.target_tags;
    this.neverGenerated = description.never_generated;
    this.lowercase = description.lowercase;
    this.unkId = description.unk_id;
    this.silentIds = new Set([description.pad_id, description.bos_id, description.eos_id]);
    const controls = new Set([...this.silentIds, this.unkId]);
    this.ids = new Map(this.vocabulary.map((word, id) => [word, id]).filter(([, id]) => !controls.has(id)));
  }

  encode(text) {
    const ids = [];
    const pieces = [];
    let characters = 0; // before `last`, as code points
    let last = 0;
    for (const match of text.matchAll(WORDS)) {
      const start = characters + lengthOf(text.slice(last, match.index));
      characters = start + lengthOf(match[0]);
      last = match.index + match[0].length;
      const word = visible(this.lowercase ? match[0].toLowerCase() : match[0]).normalize("NFC");
      if (isBlank(word)) continue;
      const id = this.ids.get(word) ?? this.unkId;
      ids.push(id);
      pieces.push({ text: this.vocabulary[id], start, end: characters });
    }
    return { ids, pieces };
  }

  splitTag(text) {
    return ["", text];
  }

  decode(ids) {
    return this.#words(ids).join(" ");
  }

  decodedPieces(ids) {
    let start = 0;
    return this.#words(ids).map((word) => {
      const end = start + lengthOf(word);
      const piece = { text: word, start, end };
      start = end + 1;
      return piece;
    });
  }

  #words(ids) {
    return ids.filter((id) => !this.silentIds.has(id)).map((id) => this.vocabulary[id]);
  }
}
