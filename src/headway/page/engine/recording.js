// Recording: every number of one pass through a model, by the names of docs/record.md. What computes is given a function
// `seen(name, matrix)` that returns the matrix, and tells it everything.

/** A recorder that records nothing. */
export const unseen = Object.assign((name, one) => one, { wanted: false });

/** Runs a model once over a source and its translation and keeps every array, {dtype, shape, values} by name. Ids are with
 * <eos>. Where tokens of the model see later ones, the logits are those of each beginning of the target, read by itself. */
export function recordPass(model, sourceIds, targetIds) {
  const arrays = {};
  const array = (name, values, shape, dtype = "float32") => (arrays[name] = { dtype, shape, values });
  const seen = Object.assign((name, one) => {
    array(name, one.values, [one.rows, one.columns]);
    return one;
  }, { wanted: true, array });
  const target = [model.config.bos_id, ...targetIds.slice(0, -1)];
  model.forward(sourceIds, target, seen);
  if (model.seesAhead) {
    const { values, shape } = arrays.logits;
    const columns = shape[1];
    for (let length = 1; length <= target.length; length++) {
      const logits = model.forward(sourceIds, target.slice(0, length));
      values.set(logits.values.subarray((length - 1) * columns), (length - 1) * columns);
    }
  }
  return arrays;
}
