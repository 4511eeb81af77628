// Between text and ids, for one model, as in translator/codec.py: which ids a text has, and whether the model can read it.

import { Refused } from "../engine/what_if.js";

const EOS = "<eos>";
const CHARACTERS_PER_PIECE = 64;

export class Codec {
  /** header: of the model file; source, target: tokenizers of tokenizer.js */
  constructor(header, source, target) {
    Object.assign(this, { header, source, target });
    this.eosId = header.config.eos_id;
    this.longestSource = header.config.max_length - 1; // <eos> takes a place
    this.tags = source.targetTags.map((language) => `>>${language}<<`); // one of which a text begins with; none of a model of one
  }

  /** A source as a record has it: {text, tokens}, its tag, where it has one, and <eos> among the tokens; no tokens but
   * <eos> of a blank one, and null for one that is too long. Raises Refused where the tag is missing. */
  read(text) {
    checkText(text);
    const [tag, rest] = this.source.splitTag(text);
    const characters = [...rest].length;
    if (characters > CHARACTERS_PER_PIECE * this.header.config.max_length) return null;
    const { ids, pieces } = this.source.encode(rest);
    if (ids.length && this.tags.length && !tag) {
      throw new Refused(`this model has several target languages: begin the text with one of ${this.tags.join(" ")}`);
    }
    const tokens = ids.map((id, at) => tokenOf(id, pieces[at]));
    if (tag && ids.length) tokens.unshift({ id: this.source.vocabulary.indexOf(tag), piece: tag, start: 0, end: 0 });
    return tokens.length > this.longestSource ? null : withEos(rest, tokens, this.eosId);
  }

  /** A target that was given. Raises Refused. */
  given(text) {
    checkText(text, "translation");
    const { ids, pieces } = this.target.encode(text);
    if (ids.length > this.longestSource) throw new Refused(`the target has more than ${this.longestSource} tokens, so it can't be inspected`);
    return withEos(text, ids.map((id, at) => tokenOf(id, pieces[at])), this.eosId);
  }

  /** A target that was found. */
  found(ids) {
    const text = this.decode(ids);
    const pieces = this.target.decodedPieces(ids);
    return withEos(text, ids.map((id, at) => tokenOf(id, pieces[at])), this.eosId);
  }

  /** The text of a translation, as one line. */
  decode(ids) {
    return this.target.decode(ids).replace(/[\n\r]/gu, " ");
  }

  /** The most pieces that a translation may have. */
  lengthCap(sourceLength, maxLength) {
    return Math.min(maxLength ?? 2 * sourceLength + 50, this.header.config.max_length - 1); // <bos> takes a place
  }
}

/** Raises Refused for what isn't text, or none that a file could hold. */
export function checkText(text, name = "text") {
  if (typeof text !== "string") throw new Refused(`the ${name} is not text (${text === null ? "null" : typeof text})`);
  if (!text.isWellFormed()) throw new Refused(`the ${name} holds half of a surrogate pair`);
}

export function idsOf({ tokens }) {
  return tokens.map(({ id }) => id);
}

function tokenOf(id, { text, start, end }) {
  return { id, piece: text, start, end };
}

/** Places are counted in Unicode characters. */
function withEos(text, tokens, eosId) {
  const end = [...text].length;
  return { text, tokens: [...tokens, { id: eosId, piece: EOS, start: end, end }] };
}
