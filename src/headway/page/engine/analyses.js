// The analyses of a translation (docs/analyses.md), as a record has them.

import { contributions } from "./contributions.js";
import { contrast, erasedReadings, erasure } from "./erasing.js";
import { faithfulness } from "./faithfulness.js";
import { decoderLens, logitLens } from "./lenses.js";
import { matrix } from "./matrices.js";
import { patching } from "./patching.js";
import { Reading } from "./reading.js";
import { Refused } from "./what_if.js";

/**
 * asked: names, or objects with `kind`; model, sourceIds and targetIds: of the record, with <eos>; arrays: of its pass;
 * codec: of the model; idsOfSource(text): of another source, with <eos>; never: ids that no translation has; maxLength: of
 * one; measured: the importance of heads {fields, arrays}, or null.
 * -> {analyses, arrays} of docs/record.md. Raises Refused.
 */
export function analysesOf(asked, given) {
  const analyst = new Analyst(given, asked.find(({ kind }) => kind === "contrast")?.instead ?? null);
  const found = { analyses: {}, arrays: {} };
  for (const one of asked) {
    const kind = one.kind ?? one;
    if (!Object.hasOwn(ANALYSES, kind)) throw new Refused(`analyses: ${kind} isn't computed in a page without a server`);
    const [fields, parts] = ANALYSES[kind](analyst, given, one);
    found.analyses[kind] = fields;
    for (const [name, { rows, columns, shape = [rows, columns], values }] of Object.entries(parts)) {
      found.arrays[`analyses.${kind}.${name}`] = { dtype: "float32", shape, values };
    }
  }
  return found;
}

/** Values that several analyses need, computed once. */
class Analyst {
  constructor({ model, sourceIds, targetIds, arrays, codec }, instead) {
    this.reading = new Reading(model, sourceIds, targetIds);
    this.arrays = arrays;
    this.foils = () => (instead === null ? new Map() : foilOf(targetIds, codec.given(instead)));
  }

  get contributions() {
    return (this.contributed ??= contributions(this.reading.model, this.arrays));
  }

  get readings() {
    return (this.erased ??= erasedReadings(this.reading));
  }

  get erasure() {
    return (this.lost ??= erasure(this.reading, this.readings));
  }

  get contrast() {
    return (this.contrasted ??= contrast(this.reading, this.readings, this.foils()));
  }
}

/** The analyses that `analysesOf` can give; measured: as there. */
export const names = (measured) => Object.keys(ANALYSES).filter((name) => name !== "head_importance" || measured);

/** Each gives its fields, and its arrays by name: matrices, or {shape, values}. Its last input is what was asked. */
const ANALYSES = {
  contributions({ contributions: { source_share, ...parts } }) {
    return [{ source_share }, parts];
  },
  erasure({ erasure: { effect, ...fields } }) {
    return [fields, { effect }];
  },
  contrast({ contrast: { foils, difference, erasure: lost } }, { codec }) {
    return [{ foils: foils.map((id) => tokenOf(codec, id)), difference }, { erasure: lost }];
  },
  logit_lens({ reading }, { codec }) {
    const { log_probability, top } = logitLens(reading);
    const named = top.map((layer) => layer.map((step) => step.map(({ id, probability }) => ({ ...tokenOf(codec, id), probability }))));
    return [{ top: named }, { log_probability }];
  },
  decoder_lens({ reading }, { codec, never, maxLength }) {
    const { log_probability, translations } = decoderLens(reading, never, maxLength);
    return [{ translations: translations.map(({ ids, score }) => ({ text: codec.decode(ids), score })) }, { log_probability }];
  },
  patching({ reading }, { codec, idsOfSource }, { other }) {
    if (typeof other !== "string") throw new Refused("patching: needs another sentence, {kind: \"patching\", other: SENTENCE}");
    const { word, other_word, encoder, decoder, ...fields } = patching(reading, idsOfSource(other), other);
    return [{ ...fields, word: tokenOf(codec, word), other_word: tokenOf(codec, other_word) }, { encoder, decoder }];
  },
  head_importance(_, { measured }, { pairs }) {
    if (!measured || pairs) throw new Refused("analyses: head_importance is measured when the page is made, over validation pairs of the model");
    const parts = Object.entries(measured.arrays).map(([name, rows]) => [name, matrix(rows.length, rows[0].length, Float32Array.from(rows.flat()))]);
    return [measured.fields, Object.fromEntries(parts)];
  },
  faithfulness({ reading, readings, contributions: { source }, erasure: { effect }, contrast: { erasure: lost, foils } }, { arrays, model }) {
    const attributions = { ...attentionOf(arrays, model.decoder.layers.length), contributions: source, erasure: effect, contrast_erasure: lost };
    return [faithfulness(reading, readings, attributions, foils), {}];
  },
};

function tokenOf({ target }, id) {
  return { id, piece: target.vocabulary[id] };
}

/** The first token in which another translation differs, by its step. Raises Refused. */
function foilOf(targetIds, { text, tokens }) {
  const step = targetIds.findIndex((id, at) => tokens[at] && tokens[at].id !== id);
  if (step < 0) throw new Refused(`contrast: “${text}” is the translation itself, so there is no other word to ask about`);
  return new Map([[step, tokens[step].id]]);
}

/** The mean of all heads of all layers, where there are any. */
function attentionOf(arrays, layers) {
  if (!layers) return {};
  const weights = Array.from({ length: layers }, (_, layer) => arrays[`decoder.layers.${layer}.cross_attention.weights`]);
  const [, rows, columns] = weights[0].shape;
  const heads = weights.reduce((sum, { shape }) => sum + shape[0], 0);
  const mean = matrix(rows, columns);
  for (const { values } of weights) values.forEach((value, at) => (mean.values[at % mean.values.length] += value / heads));
  return { attention: mean };
}
