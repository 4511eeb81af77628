// Tokens and words as they are shown.

const LONGEST = 12;
const UNSEEN = String.raw`[\p{Cc}\p{Default_Ignorable_Code_Point}\u2028\u2029\ufff9-\ufffb]`;
const EMOJI = String.raw`\p{Extended_Pictographic}\p{Emoji_Modifier}?\ufe0f?`;
const FLAG = String.raw`\u{1f3f4}[\u{e0030}-\u{e0039}\u{e0061}-\u{e007a}]{2,6}\u{e007f}`;
const JOINED_LETTERS = String.raw`(?<=\p{Script=Arabic}\p{M}*)\u200c(?=\p{Script=Arabic})`;
const KEPT_OR_UNSEEN = new RegExp(`(${FLAG}|${EMOJI}(?:\u200d${EMOJI})*|[0-9#*]\ufe0f\u20e3|${JOINED_LETTERS})|${UNSEEN}`, "gu");
const texts = new WeakMap(); // by the tokens that they are the texts of

/** A piece by itself. */
export function loosePiece(piece) {
  return visible(piece.startsWith("▁") ? piece.slice(1) : piece);
}

/** Shows characters that change the direction of their neighbours, or are invisible, as a sign, but for those
 * that make one emoji of several, or keep two Arabic letters apart. */
export function visible(text) {
  return text.replace(KEPT_OR_UNSEEN, (whole, kept) => kept ?? "\u25af") || "▁";
}

/** For a label: at most a dozen characters, marks included. */
export function brief(text, longest = LONGEST) {
  const characters = [...text];
  return characters.length > longest ? `${characters.slice(0, longest - 1).join("")}…` : text;
}

/** Names of the rows and columns of an attention of encoder, decoder or cross: a row of the decoder by the token
 * that it writes, a column by the token that stands there to be read. */
export function attentionLabels(record, kind) {
  const source = pieceTexts(record.source.tokens);
  const written = pieceTexts(record.target.tokens);
  return { encoder: [source, source], decoder: [written, readTexts(record)], cross: [written, source] }[kind];
}

/** Pieces to be read: without the sign of a space; what goes on with a word begins with a dot. */
export function pieceTexts(tokens) {
  const textOf = ({ piece, word }, place) => {
    const goesOn = tokens[place - 1]?.word === word && !piece.startsWith("▁");
    return loosePiece(goesOn ? `·${piece}` : piece);
  };
  if (!texts.has(tokens)) texts.set(tokens, tokens.map(textOf));
  return texts.get(tokens);
}

/** The decoder's input: the start symbol, and the target without its last token. */
export function readTexts(record) {
  return [visible(record.start.piece), ...pieceTexts(record.target.tokens).slice(0, -1)];
}

/** The language of a side, as BCP 47 spells it. A model of several target languages has "mul"; the source's first token
 * says which was asked for: `>>ko<<`, or `>>eng_Latn:kor_Hang<<` where the model has several of both. */
export function languageOf({ model, source }, side) {
  const tag = model.target_language === "mul" && /^>>(.+)<<$/u.exec(source.tokens[0].piece);
  const asked = { source: model.source_language, target: model.target_language };
  if (tag) [asked.target, asked.source = model.source_language] = tag[1].split(":").reverse();
  return asked[side].replaceAll("_", "-");
}

/** The words of a text: {text, places}, the tokens that make it. The control symbol at the end is one of its own. */
export function wordsOf({ text, tokens }) {
  const characters = [...text];
  const words = [];
  tokens.forEach((token, place) => {
    const last = words.at(-1);
    if (last && last.word === token.word) {
      last.places.push(place);
      last.end = Math.max(last.end, token.end);
    } else {
      words.push({ word: token.word, places: [place], start: token.start, end: token.end, piece: token.piece });
    }
  });
  return words.map(({ places, start, end, piece }) => ({
    text: visible(characters.slice(start, end).join("") || loosePiece(piece)),
    control: end <= start,
    places,
  }));
}
