// Python's entry (page/export.py): the model on ids alone, for the check that an export is the model.

import { analysesOf } from "./analyses.js";
import { beamSearch } from "./beam.js";
import { greedy } from "./greedy.js";
import { openModel } from "./loading.js";
import { recordPass } from "./recording.js";
import { engineOf } from "./recomputing.js";
import { editedModel } from "./what_if.js";

let opened = null;

globalThis.onIds = {
  /** -> whether the kernel multiplies */
  open(bytes, withKernel) {
    opened = openModel(bytes, withKernel);
    return opened.kernel;
  },
  greedy: (source, maxLength, edits = [], noRepeatNgram = 0) => greedy(engine(edits), source, maxLength, noRepeatNgram),
  beam: (source, maxLength, options, edits = []) => beamSearch(engine(edits), source, maxLength, options),
  score: (source, target, edits = []) => engine(edits).score(source, target),
  logits: (source, target) => [...opened.model.forward(source, target).values],
  /** instead: ids of another translation, where a contrast asks for one; other: of another source, where patching does;
   * <eos> is among them. */
  analyses(asked, source, target, maxLength, { instead = [], other = [], edits = [] } = {}) {
    const { header } = opened;
    const model = editedModel(opened.model, edits);
    const codec = {
      target: { vocabulary: Array.from({ length: model.output.weight.rows }, (_, id) => `${id}`) },
      given: () => ({ tokens: instead.map((id) => ({ id })) }),
      decode: (ids) => ids.join(" "),
    };
    const arrays = recordPass(model, source, target);
    const idsOfSource = () => other;
    const found = analysesOf(asked, { model, sourceIds: source, targetIds: target, arrays, codec, idsOfSource, measured: header.head_importance, never: header.never_generated, maxLength });
    for (const array of Object.values(found.arrays)) array.values = [...array.values];
    return found;
  },
  record(source, target, edits = []) {
    const arrays = recordPass(editedModel(opened.model, edits), source, target);
    for (const array of Object.values(arrays)) array.values = [...array.values];
    return arrays;
  },
};

function engine(edits) {
  return engineOf(opened.model, edits, opened.header.never_generated);
}
