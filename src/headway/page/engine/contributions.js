// ALTI+, as in insight/analyses/contributions.py: what each token of the source, and of the target read so far, contributes
// to each token of the translation. Each row of source and target together sums to 1.

import { EPSILON } from "./layers.js";
import { matrix, rowOf, sumOf } from "./matrices.js";

/** arrays: of a pass through the model. -> {source_share, source: (target, source), target: (target, target); of each layer
 * by itself encoder: (layers, source, source), decoder: (layers, target, target), cross: (layers, target, source)} */
export function contributions(model, arrays) {
  const [count, length] = [arrays["encoder.input"].shape[0], arrays["decoder.input"].shape[0]];
  const encoder = model.encoder.layers.map((layer) => ofSelfAttention(layer, arrays));
  const decoder = model.decoder.layers.map((layer) => ofSelfAttention(layer, arrays));
  const cross = model.decoder.layers.map((layer) => ofCrossAttention(layer, arrays));
  const ofEncoder = encoder.reduce((before, one) => product(one, before), identity(count));
  let [source, target] = [matrix(length, count), identity(length)];
  decoder.forEach((own, layer) => {
    const [outputs, kept] = apart(cross[layer]);
    const residual = matrix(length, length, own.values.map((share, at) => share * kept[Math.floor(at / length)]));
    source = sumOf(product(outputs, ofEncoder), product(residual, source));
    target = product(residual, target);
  });
  const source_share = Array.from({ length }, (_, step) => rowOf(source, step).reduce((sum, share) => sum + share, 0));
  const outputs = cross.map((one) => apart(one)[0]);
  return { source_share, source, target, encoder: stacked(encoder, count, count), decoder: stacked(decoder, length, length), cross: stacked(outputs, length, count) };
}

/** Key i is token i, with the residual connection in the term of its own query. -> (query, key) */
function ofSelfAttention({ name, selfAttention, selfResidual }, arrays) {
  return shares(selfAttention, selfResidual, arrays[`${name}.input`], arrays, false);
}

/** A key for each of the encoder's outputs, the last for the residual connection. -> (query, key + 1) */
function ofCrossAttention({ crossAttention, selfResidual, crossResidual }, arrays) {
  return shares(crossAttention, crossResidual, arrays[`${selfResidual.name}.${resultOf(selfResidual)}`], arrays, true);
}

/** max(0, |y_i| - |y_i - T_i(x_j)|), by the sum of absolute values, divided by its sum over j; where no term comes near, all
 * is the residual connection's. x: what the residual connection carries; apart: whether it is a key of its own, the last. */
function shares(attention, residual, { values: x }, arrays, isApart) {
  const { shape: [, queries, keys], values: weights } = arrays[`${attention.name}.weights`];
  const [sums, results] = [`${residual.name}.sum`, `${residual.name}.${resultOf(residual)}`].map((name) => arrays[name].values);
  const given = givenByHeads(attention, arrays);
  const size = attention.output.weight.rows;
  const found = matrix(queries, isApart ? keys + 1 : keys);
  for (let query = 0; query < queries; query++) {
    const own = isApart ? keys : query;
    const part = (all) => all.subarray(query * size, (query + 1) * size);
    const [row, result] = [rowOf(found, query), part(results)];
    const through = residual.normFirst ? (term) => term : linearNorm(residual.norm, part(sums));
    const far = (term) => result.reduce((sum, value, at) => sum + Math.abs(value - term[at]), 0);
    const whole = far(new Float64Array(size));
    for (let key = 0; key < row.length; key++) {
      const term = key === own ? Float64Array.from(part(x)) : new Float64Array(size);
      given.forEach(({ head, outputs }) => key < keys && addTimes(term, rowOf(outputs, key), weights[(head * queries + query) * keys + key]));
      row[key] = Math.max(0, whole - far(through(term)));
    }
    const total = row.reduce((sum, near) => sum + near, 0);
    if (total > 0) row.forEach((near, key) => (row[key] = near / total));
    else row[own] = 1;
  }
  return found;
}

/** v_j W_O of each head that has a say, without the bias of the values. -> [{head, outputs: (key, d_model)}] */
function givenByHeads({ name, value, output, numHeads, headsOff }, arrays) {
  const { shape: [, keys, width], values } = arrays[`${name}.values`];
  const heads = Array.from({ length: numHeads }, (_, head) => head).filter((head) => !headsOff.includes(head));
  return heads.map((head) => {
    const outputs = matrix(keys, output.weight.rows);
    for (let key = 0; key < keys; key++) {
      const own = values.subarray((head * keys + key) * width, (head * keys + key + 1) * width).map((one, at) => one - value.bias[head * width + at]);
      for (let to = 0; to < outputs.columns; to++) {
        const factors = rowOf(output.weight, to).subarray(head * width, (head + 1) * width);
        rowOf(outputs, key)[to] = own.reduce((sum, one, at) => sum + one * factors[at], 0);
      }
    }
    return { head, outputs };
  });
}

/** Layer normalisation of a row as a function of its terms: once the row's deviation is known, it is linear. */
function linearNorm({ weight }, row) {
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const middle = mean(row);
  const deviation = Math.sqrt(mean(row.map((value) => (value - middle) ** 2)) + EPSILON);
  return (term) => {
    const middle = mean(term);
    return term.map((value, at) => (weight[at] * (value - middle)) / deviation);
  };
}

/** The name of what a sub-layer gives to the next. */
function resultOf({ normFirst }) {
  return normFirst ? "sum" : "normalised";
}

function addTimes(sum, values, factor) {
  for (let at = 0; at < sum.length; at++) sum[at] += factor * values[at];
}

/** (rows, columns) -> all columns but the last, and the last. */
function apart(one) {
  const rest = matrix(one.rows, one.columns - 1);
  for (let row = 0; row < one.rows; row++) rowOf(rest, row).set(rowOf(one, row).subarray(0, -1));
  return [rest, Float32Array.from({ length: one.rows }, (_, row) => rowOf(one, row).at(-1))];
}

/** (rows, inner) times (inner, columns) */
function product(one, other) {
  const found = matrix(one.rows, other.columns);
  for (let row = 0; row < one.rows; row++) rowOf(one, row).forEach((factor, inner) => addTimes(rowOf(found, row), rowOf(other, inner), factor));
  return found;
}

function identity(size) {
  const found = matrix(size, size);
  for (let at = 0; at < size; at++) rowOf(found, at)[at] = 1;
  return found;
}

/** -> {shape: [layers, rows, columns], values} */
function stacked(layers, rows, columns) {
  return { shape: [layers.length, rows, columns], values: Float32Array.from(layers.flatMap(({ values }) => [...values])) };
}
