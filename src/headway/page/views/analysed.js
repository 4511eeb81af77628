// The analyses of a translation (docs/analyses.md): those of the record, and those that the live model has computed since.

import { asShown, sourceAsItWas } from "./asking.js";
import { openNumbers } from "./numbers.js";

/** The analyses that a server computes. */
export const ANALYSES = ["contributions", "erasure", "contrast", "logit_lens", "decoder_lens", "patching", "head_importance", "faithfulness"];
/** Computed as soon as the reader looks: together they take less than the translation. */
export const QUICK = ["contributions", "erasure", "contrast", "logit_lens", "decoder_lens"];

/**
 * found(name) -> {fields, parts, array(part)}, or null where it isn't known; names(): those that are known or computed;
 * computes(name): whether the live model can; ask(analyses, status, {edits, failed}): async, has them computed, of the model
 * with these edits (default: the record's), says how it goes in `status`, and tells failed(problem) what went wrong
 * -> whether that worked.
 */
export function analysesOf(glass) {
  const { record } = glass;
  const kept = glass.kept("analyses", { found: new Map() });
  const note = ({ analyses = {}, arrays = {} }, get) => {
    for (const [name, fields] of Object.entries(analyses)) {
      const parts = Object.keys(arrays).flatMap((one) => (one.startsWith(`analyses.${name}.`) ? [one.slice(`analyses.${name}.`.length)] : []));
      kept.found.set(name, { fields, parts, array: (part) => get(`analyses.${name}.${part}`) });
    }
  };
  if (!kept.found.size) note(record, glass.get);
  return {
    names: () => [...new Set([...kept.found.keys(), ...glass.computes])],
    found: (name) => kept.found.get(name) ?? null,
    computes: (name) => glass.computes.includes(name),
    async ask(analyses, status, { edits = record.edits, failed } = {}) {
      const options = { ...asShown(record), edits, analyses, arrays: "none" };
      const answer = await glass.request(sourceAsItWas(record), options, status, failed);
      if (!answer) return false;
      note(answer, openNumbers(answer));
      return true;
    },
  };
}
