// The model in a worker, so that the page never stalls. Messages: {id, task, given} come, {id, answer} or {id, problem} go.

import { Translator } from "./translator.js";

let translator = null;

const tasks = {
  /** given: {bytes, withKernel} -> about the model */
  open({ bytes, withKernel }) {
    translator = new Translator(bytes, withKernel);
    return translator.about;
  },
  translate: ({ text, options }) => translator.translate(text, options),
  inspect: ({ text, options }) => translator.inspect(text, options),
};

globalThis.addEventListener("message", ({ data: { id, task, given } }) => {
  try {
    globalThis.postMessage({ id, answer: tasks[task](given) });
  } catch (problem) {
    globalThis.postMessage({ id, problem: problem.message });
  }
});
