// Activation patching between two sentences, as in insight/analyses/patching.py: the model reads the one; one place, a
// layer's output at one position, is put to what it is when the model reads the other, of as many tokens.

import { targetMask, paddingMask } from "./masks.js";
import { likeliest, matrix, rowOf } from "./matrices.js";
import { unseen } from "./recording.js";
import { Refused, alike } from "./what_if.js";

/** otherIds, text: ids of the other sentence, with <eos>, and the sentence. -> {other, step, word, other_word: ids, difference,
 * other_difference, flips_above, encoder: (layers + 1, source), decoder: (layers + 1, step + 1)}. Raises Refused. */
export function patching({ model, source, words, read, given }, otherIds, text) {
  if (otherIds.length !== source.length) {
    throw new Refused(`patching: “${text}” must have as many tokens as the sentence, ${words}; it has ${otherIds.length - 1}`);
  }
  const [logits, others] = [source, otherIds].map((ids) => model.forward(ids, read));
  const step = firstOther(logits, others, given);
  if (step < 0) throw new Refused(`patching: the model gives “${text}” the same translation, so that no place can flip a word`);
  const [word, otherWord] = [given[step], likeliest(rowOf(others, step), 1)[0]];
  const difference = (row) => row[word] - row[otherWord];
  const [here, there] = [logits, others].map((one) => difference(rowOf(one, step)));
  const share = (hidden) => {
    const last = matrix(1, hidden.columns, rowOf(hidden, step).slice());
    return (here - difference(model.output.forward(last).values)) / (here - there);
  };

  const { pad_id: padId } = model.config;
  const beginning = read.slice(0, step + 1);
  const masks = [targetMask(beginning, padId), paddingMask(source, padId, step + 1)];
  const sourceMask = paddingMask(source, padId, source.length);
  const x = (ids) => model.embed(model.sourceEmbedding, model.sourcePositions, "source_positions", ids, unseen);
  const y = model.embed(model.targetEmbedding, model.targetPositions, "target_positions", beginning, unseen);
  const decoded = (memory) => model.decoder.forward(y, memory, ...masks, unseen);
  const [memory, theirMemory] = [source, otherIds].map((ids) => model.encoder.forward(x(ids), sourceMask, unseen));
  return {
    other: text,
    step,
    word,
    other_word: otherWord,
    difference: here,
    other_difference: there,
    flips_above: here / (here - there),
    encoder: patched(
      statesOf(model.encoder, x(source), sourceMask),
      statesOf(model.encoder, x(otherIds), sourceMask),
      (layer, state) => share(decoded(restOf(model.encoder, layer).forward(state, sourceMask, unseen))),
    ),
    decoder: patched(
      statesOf(model.decoder, y, memory, ...masks),
      statesOf(model.decoder, y, theirMemory, ...masks),
      (layer, state) => share(restOf(model.decoder, layer).forward(state, memory, ...masks, unseen)),
    ),
  };
}

/** The first step whose token the one source makes likelier than the token that the other source makes likeliest; -1: none.
 * logits, others: (target, vocabulary) */
function firstOther(logits, others, given) {
  return given.findIndex((token, step) => {
    const [other] = likeliest(rowOf(others, step), 1);
    return other !== token && rowOf(logits, step)[token] > rowOf(logits, step)[other];
  });
}

/** The input of the first layer and the output of each, (length, d_model). */
function statesOf({ layers }, x, ...rest) {
  const found = [x];
  for (const layer of layers) found.push(layer.forward(found.at(-1), ...rest, unseen));
  return found;
}

/** The rest of a stack, from the input of layer `first` on, and its last norm. */
function restOf(stack, first) {
  return Object.assign(alike(stack), { layers: stack.layers.slice(first) });
}

/** `rest` of each state with one position put to the other's. -> (states, positions) */
function patched(own, otherStates, rest) {
  const found = matrix(own.length, own[0].rows);
  own.forEach((state, layer) => {
    for (let place = 0; place < state.rows; place++) {
      const changed = matrix(state.rows, state.columns, state.values.slice());
      rowOf(changed, place).set(rowOf(otherStates[layer], place));
      rowOf(found, layer)[place] = rest(layer, changed);
    }
  });
  return found;
}
