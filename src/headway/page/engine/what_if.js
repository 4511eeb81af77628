// Edits of a model or its source, as in insight/what_if.py. An edit changes a copy of the model, or the text.

import { WORDS } from "../tokenizer/characters.js";
import { matrix } from "./matrices.js";

/** A text that can't be translated or inspected, or an edit that can't be made: what to tell the reader. */
export class Refused extends Error {}

/** The text after the edits that change it. Raises Refused. */
export function editedText(text, edits) {
  return edits.filter(({ kind }) => kind === "swap_words").reduce(swapped, text);
}

/** Whether the earlier tokens of a translation are to be read anew at each step, because they see the later. */
export function seesAhead(edits) {
  return edits.some(({ kind }) => kind === "look_ahead_off");
}

/** A copy after the edits; it shares the weights with the model. Raises Refused. */
export function editedModel(model, edits) {
  if (edits.every(({ kind }) => kind === "swap_words")) return model;
  const edited = copyOf(model);
  for (const edit of edits) {
    if (edit.kind === "head_off") attentionOf(edited, edit).headsOff.push(edit.head);
    else if (edit.kind === "positions_off") edited.sourcePositions = edited.targetPositions = { forward: (length) => matrix(length, model.config.d_model) }; // zeros
    else if (edit.kind === "scaling_off") attentionsOf(edited).forEach(undoScaling);
    else if (edit.kind === "look_ahead_off") edited.seesAhead = true;
    else if (edit.kind !== "swap_words") throw new Refused(`edits: ${edit.kind} is unknown`);
  }
  return edited;
}

function undoScaling(attention) {
  attention.queryFactor = Math.sqrt(attention.query.weight.rows / attention.numHeads);
}

/** A copy of the model with layers and attentions of its own. */
function copyOf(model) {
  const copied = alike(model);
  for (const stack of ["encoder", "decoder"]) {
    copied[stack] = alike(model[stack]);
    copied[stack].layers = model[stack].layers.map((layer) => {
      const own = alike(layer);
      for (const name of ["selfAttention", "crossAttention"]) {
        if (layer[name]) own[name] = Object.assign(alike(layer[name]), { headsOff: [...layer[name].headsOff] });
      }
      return own;
    });
  }
  return copied;
}

/** A copy of its own properties; what they are is shared. */
export function alike(one) {
  return Object.assign(Object.create(Object.getPrototypeOf(one)), one);
}

function attentionsOf({ encoder, decoder }) {
  return [...encoder.layers, ...decoder.layers].flatMap(({ selfAttention, crossAttention }) => [selfAttention, crossAttention ?? []].flat());
}

function attentionOf({ encoder, decoder }, { attention: kind, layer, head }) {
  const { layers } = kind === "encoder" ? encoder : decoder;
  const attention = layers[layer]?.[kind === "cross" ? "crossAttention" : "selfAttention"];
  if (!attention) throw new Refused(`edits: ${kind} attention has no layer ${layer}, only ${layers.length}, from 0`);
  if (head >= attention.numHeads) throw new Refused(`edits: ${kind} attention has no head ${head}, only ${attention.numHeads}, from 0`);
  return attention;
}

function swapped(text, { first, second }) {
  const words = [...text.matchAll(WORDS)];
  const [low, high] = [Math.min(first, second), Math.max(first, second)];
  if (high >= words.length) throw new Refused(`edits: there is no word ${high}, the text has ${words.length}, numbered from 0`);
  if (low === high) return text;
  const [one, other] = [words[low], words[high]];
  const [ends, goesOn] = [one.index + one[0].length, other.index + other[0].length];
  return text.slice(0, one.index) + other[0] + text.slice(ends, other.index) + one[0] + text.slice(goesOn);
}
