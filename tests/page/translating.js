// Answers what tests ask of the page's translator: {file}, once, then {task: "translate" or "inspect", text, options}; or
// {words}, a text, for its words in a view, or {refused}, for how often a worker is ended that opens no model.

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

import { openInWorker } from "./page/engine/model.js";
import { Translator } from "./page/engine/translator.js";
import { WORDS } from "./page/views/trying.js";

let translator = null;

async function endedWorkers(problem) {
  const listeners = {};
  let ended = 0;
  const worker = {
    addEventListener: (name, listener) => (listeners[name] = listener),
    postMessage: ({ id }) => listeners.message({ data: { id, problem } }),
    terminate: () => ended++,
  };
  return openInWorker(worker, new Uint8Array(1)).catch(({ message }) => ({ message, ended }));
}

function answer({ file, task, text, options, words, refused }) {
  if (words) return words.match(WORDS);
  if (refused) return endedWorkers(refused);
  if (!file) return translator[task](text, options);
  translator = new Translator(new Uint8Array(readFileSync(file)));
  return translator.about;
}

for await (const line of createInterface({ input: process.stdin })) {
  try {
    console.log(JSON.stringify(await answer(JSON.parse(line))));
  } catch (problem) {
    console.log(JSON.stringify({ problem: problem.message }));
  }
}
