// Subwords of a sentencepiece model. As headway/text/subwords.py, with what sentencepiece_processor.cc does between the
// text and the pieces: bytes for what has no piece, and spaces for `▁`.

import { Bpe } from "./bpe.js";
import { Normalizer } from "./normalizer.js";
import { originalPlaces, placedPieces } from "./places.js";
import { Unigram } from "./unigram.js";
import { NO_SPACE, SPACE_MARK, UNSEEN, isBlank, lengthOf, visible } from "./characters.js";

/** sentencepiece takes U+2581 for a space. In a text it is a character, so a code point that never is one stands for it. */
const SPACE_MARK_IN_TEXT = "\ufdd0";
const LEADING_TAG = new RegExp(`^${UNSEEN}(>>${NO_SPACE}+?<<)${UNSEEN}`, "u");
const UTF8 = new TextEncoder();
const FROM_UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export class SubwordTokenizer {
  constructor(description) {
    this.description = description;
    this.kind = description.kind;
    this.vocabulary = description.pieces;
    this.targetTags = description.target_tags;
    this.normalizer = new Normalizer(description);
    this.model = this.kind === "bpe" ? new Bpe(description) : new Unigram(description);
    this.unkId = description.unk_id;
    this.byteIds = description.byte;
    this.bytes = new Map(this.byteIds.map((id, byte) => [id, byte]));
    this.neverGenerated = description.never_generated;
    this.tags = new Set(this.neverGenerated.filter((id) => id !== this.unkId).map((id) => this.vocabulary[id]));
    this.silentIds = new Set([...description.control, this.unkId]);
  }

  encode(text) {
    const { ids, pieces, spans } = this.#encoded(normalized(text));
    return { ids, pieces: placedPieces(pieces, originalPlaces(spans, text), text).map(readable) };
  }

  splitTag(text) {
    const [whole, tag] = LEADING_TAG.exec(text) ?? [];
    return this.tags.has(tag) ? [tag, text.slice(whole.length)] : ["", text];
  }

  decode(ids) {
    return this.#surfaces(this.#textIds(ids)).join("").replaceAll(SPACE_MARK_IN_TEXT, SPACE_MARK);
  }

  decodedPieces(ids) {
    const textIds = this.#textIds(ids);
    const surfaces = this.#surfaces(textIds);
    const pieces = textIds.map((id) => this.vocabulary[id]);
    let end = 0;
    const spans = surfaces.map((surface) => [end, (end += lengthOf(surface))]);
    return placedPieces(pieces, spans, surfaces.join("")).map(readable);
  }

  #textIds(ids) {
    return ids.filter((id) => !this.silentIds.has(id));
  }

  /** -> {ids, pieces, spans}: [start, end] of each piece in the text, in code points. */
  #encoded(text) {
    const { text: split, places } = this.normalizer.normalize(text);
    const [ids, pieces, spans] = [[], [], []];
    let afterUnknown = false;
    for (const { start, end, id } of this.model.segment(split)) {
      const piece = split.slice(start, end);
      const isUnknown = id === this.unkId;
      const span = [places[start], places[end]];
      if (isUnknown && this.byteIds.length) {
        for (const byte of UTF8.encode(piece)) {
          ids.push(this.byteIds[byte]);
          pieces.push(this.vocabulary[this.byteIds[byte]]);
          spans.push(span);
        }
      } else if (isUnknown && afterUnknown) {
        pieces[pieces.length - 1] += piece;
        spans[spans.length - 1][1] = span[1];
      } else {
        ids.push(id);
        pieces.push(piece);
        spans.push(span);
      }
      afterUnknown = isUnknown;
    }
    return { ids, pieces, spans };
  }

  /** The text that each id adds. All of a character's bytes but the last add nothing. */
  #surfaces(ids) {
    const { add_dummy_prefix, remove_extra_whitespaces } = this.description;
    const surfaces = [];
    let isStart = true;
    for (let at = 0; at < ids.length; ) {
      if (this.bytes.has(ids[at])) {
        const first = at;
        while (this.bytes.has(ids[at])) at += 1;
        surfaces.push(...byteSurfaces(Uint8Array.from(ids.slice(first, at), (id) => this.bytes.get(id))));
        isStart = false;
        continue;
      }
      let piece = this.vocabulary[ids[at]];
      if (isStart && (add_dummy_prefix || remove_extra_whitespaces) && piece.startsWith(SPACE_MARK)) {
        piece = piece.slice(1);
        isStart = remove_extra_whitespaces;
      }
      if (piece) isStart = false;
      surfaces.push(piece.replaceAll(SPACE_MARK, " "));
      at += 1;
    }
    return surfaces;
  }
}

/** The text for sentencepiece: what is visible, in Unicode's NFKC; its own NFKC doesn't put marks in their order. */
function normalized(text) {
  return isBlank(text) ? "" : visible(text).normalize("NFKC").replaceAll(SPACE_MARK, SPACE_MARK_IN_TEXT);
}

function readable(piece) {
  return { ...piece, text: piece.text.replaceAll(SPACE_MARK_IN_TEXT, SPACE_MARK) };
}

/** The text that each byte of UTF-8 adds: a character's last byte the character, a byte that is part of none U+FFFD. */
function byteSurfaces(bytes) {
  const surfaces = [];
  for (let at = 0; at < bytes.length; ) {
    const length = bytes[at] < 0xc0 ? 1 : bytes[at] < 0xe0 ? 2 : bytes[at] < 0xf0 ? 3 : 4;
    let character = "\ufffd";
    try {
      character = FROM_UTF8.decode(bytes.subarray(at, at + length));
      surfaces.push(...Array(length - 1).fill(""));
      at += length;
    } catch {
      at += 1;
    }
    surfaces.push(character);
  }
  return surfaces;
}
