// Does the order of words matter? Two sentences of the same words in another order, as in insight/order.py. The pairs of
// sentences stand in the header of the model file.

/** -> {kind, sentences, with_positions, without_positions} of a record; null where reversing changes nothing. */
export function wordOrder(pair, text) {
  const untried = { with_positions: [], without_positions: [] };
  if (pair) return { kind: "not", sentences: pair, ...untried };
  const words = text.split(/\s+/u).filter((word) => word);
  const backwards = words.toReversed().join(" ");
  return backwards === words.join(" ") ? null : { kind: "reversed", sentences: [text, backwards], ...untried };
}
