// Answers what tests ask of tokenizers: {name, description}, once, then {name, texts} or {name, ids}.

import { createInterface } from "node:readline";

import { loadTokenizer } from "./page/tokenizer/tokenizer.js";

const tokenizers = new Map();

function answer({ name, description, texts, ids }) {
  if (description) {
    const tokenizer = loadTokenizer(description);
    tokenizers.set(name, tokenizer);
    const { kind, vocabulary, targetTags, neverGenerated } = tokenizer;
    return { kind, vocabulary, targetTags, neverGenerated };
  }
  const tokenizer = tokenizers.get(name);
  const spans = (pieces) => pieces.map(({ text, start, end }) => [text, start, end]);
  if (ids) return ids.map((some) => ({ text: tokenizer.decode(some), pieces: spans(tokenizer.decodedPieces(some)) }));
  return texts.map((text) => {
    const encoded = tokenizer.encode(text);
    return { ids: encoded.ids, pieces: spans(encoded.pieces), split: tokenizer.splitTag(text) };
  });
}

for await (const line of createInterface({ input: process.stdin })) console.log(JSON.stringify(answer(JSON.parse(line))));
