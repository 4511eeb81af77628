// For other pages: `const model = await load(url)`, then `await model.translate(text, {beamSize: 5})`.

import { openInWorker } from "./model.js";

/** url: of a model file, such as model.headway. -> a promise of a Model, see model.js. */
export async function load(url, options = {}) {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url}: ${answer.status} ${answer.statusText}`);
  const bytes = new Uint8Array(await answer.arrayBuffer());
  return openInWorker(new Worker(new URL("./worker.js", import.meta.url), { type: "module" }), bytes, options);
}
