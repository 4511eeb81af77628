// A tokenizer in the page: text to ids and back, as headway/text/tokenizer.py has it, with the same ids for the same text.
// `tokenizer_description` of headway/page/model_file.py makes the description of it.

import { SubwordTokenizer } from "./subword_tokenizer.js";
import { WordTokenizer } from "./word_tokenizer.js";

/**
 * -> a tokenizer:
 *
 * encode(text) -> {ids, pieces}, without control symbols; both empty for blank text. pieces: [{text, start, end}], the token
 *   as a person sees it, and the characters of the text, as Unicode code points, that it stands for
 * splitTag(text) -> [tag, text]: the tag that a source begins with, "" where there is none, and the text itself
 * decode(ids) -> the text of the ids; control ids among them give nothing
 * decodedPieces(ids) -> [{text, start, end}] of the ids, without control ids, with their places in decode(ids)
 * kind: "bpe", "unigram" or "word"; vocabulary: every piece, by its id; targetTags: the languages that a tag may ask for;
 * neverGenerated: ids that no translation may have
 */
export function loadTokenizer(description) {
  return description.kind === "word" ? new WordTokenizer(description) : new SubwordTokenizer(description);
}
