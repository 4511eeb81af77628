// A model in a worker, as a page has it.

/** worker: runs worker.js; bytes: of a model file. -> a promise of the Model. An error says what is wrong with the file. */
export async function openInWorker(worker, bytes, { withKernel = true } = {}) {
  const waiting = new Map();
  let count = 0;
  worker.addEventListener("message", ({ data: { id, answer, problem } }) => {
    const { resolve, reject } = waiting.get(id);
    waiting.delete(id);
    if (problem === undefined) resolve(answer);
    else reject(new Error(problem));
  });
  worker.addEventListener("error", ({ message }) => {
    for (const { reject } of waiting.values()) reject(new Error(message || "the worker could not be started"));
    waiting.clear();
  });
  const ask = (task, given, moved = []) =>
    new Promise((resolve, reject) => {
      waiting.set(++count, { resolve, reject });
      worker.postMessage({ id: count, task, given }, moved);
    });
  try {
    return new Model(worker, ask, await ask("open", { bytes, withKernel }, [bytes.buffer]));
  } catch (problem) {
    worker.terminate();
    throw problem;
  }
}

class Model {
  constructor(worker, ask, about) {
    Object.assign(this, { worker, ask, about });
  }

  /** A promise of {text, score, stopped, tokens, source_tokens, alternatives}; `score` is null without a translation.
   * options: beamSize, lengthPenalty, maxLength, nBest, noRepeatNgram; the model's own where they are left out. */
  translate(text, options = {}) {
    return this.ask("translate", { text, options });
  }

  /** A promise of the record of docs/record.md. options: those of `translate`, and edits, cases, translation, arrays. */
  inspect(text, options = {}) {
    return this.ask("inspect", { text, options });
  }

  /** Ends the worker. */
  close() {
    this.worker.terminate();
  }
}
