// Answers what tests ask of the page's translator: {file}, once, then {task: "translate" or "inspect", text, options}.

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

import { Translator } from "./page/engine/translator.js";

let translator = null;

function answer({ file, task, text, options }) {
  if (!file) return translator[task](text, options);
  translator = new Translator(new Uint8Array(readFileSync(file)));
  return translator.about;
}

for await (const line of createInterface({ input: process.stdin })) {
  try {
    console.log(JSON.stringify(answer(JSON.parse(line))));
  } catch (problem) {
    console.log(JSON.stringify({ problem: problem.message }));
  }
}
