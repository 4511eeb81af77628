// The page's tokenizer and Hugging Face's on the same texts: {tokenizers: {page, peer}, texts} -> {page, peer}, each with
// ids and milliseconds. The arguments are the two modules.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [{ loadTokenizer }, { Tokenizer }] = await Promise.all(process.argv.slice(2).map((path) => import(pathToFileURL(path))));
const { tokenizers, texts } = JSON.parse(readFileSync(0, "utf-8"));
const page = loadTokenizer(tokenizers.page);
const peer = new Tokenizer(tokenizers.peer, {});

function timed(encode) {
  texts.forEach(encode);
  const start = performance.now();
  const ids = texts.map(encode);
  return { ids, milliseconds: performance.now() - start };
}

const found = { page: timed((text) => page.encode(text).ids), peer: timed((text) => peer.encode(text, { add_special_tokens: false }).ids) };
console.log(JSON.stringify(found));
