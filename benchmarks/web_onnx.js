// The model of `headway export --to onnx` in onnxruntime-web, one thread: as many steps of search as it is asked for.

import { likeliest } from "./int8/engine/matrices.js";

export async function open(model, runtime) {
  const ort = await import(new URL(`${runtime}ort.wasm.min.mjs`, location.href).href);
  ort.env.wasm.numThreads = 1;
  ort.env.wasm.wasmPaths = new URL(runtime, location.href).href;
  const at = (name) => new URL(`${model}${name}`, location.href).href;
  const options = { executionProviders: ["wasm"], externalData: [{ path: "weights.bin", data: at("weights.bin") }] };
  const [encoder, decoder] = [await ort.InferenceSession.create(at("encoder.onnx"), options), await ort.InferenceSession.create(at("decoder.onnx"), options)];
  return { search: (source, steps, beamSize) => search(ort, encoder, decoder, source, steps, beamSize) };
}

/** source: ids with <eos>; beamSize 1: greedy search. */
async function search(ort, encoder, decoder, source, steps, beamSize) {
  const ids = (values) => new ort.Tensor("int64", BigInt64Array.from(values, BigInt), [values.length]);
  const row = new ort.Tensor("int64", BigInt64Array.from(source, BigInt), [1, source.length]);
  let { memory_keys, memory_values } = await encoder.run({ source: row });
  const [layers, , , width] = memory_keys.dims;
  let [tokens, scores, sources] = [[2], [0], row];
  let keys = new ort.Tensor("float32", new Float32Array(0), [layers, 1, 0, width]);
  let values = keys;
  for (let step = 0; step < steps; step++) {
    const found = await decoder.run({ tokens: ids(tokens), source: sources, memory_keys, memory_values, keys, values });
    const next = choose(found.logits, scores, beamSize);
    const parents = next.map(({ place }) => place);
    tokens = next.map(({ token }) => token);
    scores = next.map(({ score }) => score);
    keys = beamSize === 1 ? found.new_keys : picked(ort, found.new_keys, parents);
    values = beamSize === 1 ? found.new_values : picked(ort, found.new_values, parents);
    if (step === 0 && beamSize > 1) {
      memory_keys = picked(ort, memory_keys, parents);
      memory_values = picked(ort, memory_values, parents);
      sources = new ort.Tensor("int64", BigInt64Array.from(parents.flatMap(() => source), BigInt), [parents.length, source.length]);
    }
  }
}

/** The likeliest continuations: {place, token, score}. logits: (rows, vocabulary) */
function choose({ data, dims }, scores, beamSize) {
  const size = dims[1];
  const all = scores.flatMap((score, place) => {
    const logits = data.subarray(place * size, (place + 1) * size);
    let [most, total] = [-Infinity, 0];
    for (let at = 0; at < size; at++) if (logits[at] > most) most = logits[at];
    for (let at = 0; at < size; at++) total += Math.exp(logits[at] - most);
    const sum = most + Math.log(total);
    return likeliest(logits, beamSize + 1).map((token) => ({ place, token, score: score + logits[token] - sum }));
  });
  return all.toSorted((one, other) => other.score - one.score).slice(0, beamSize);
}

/** Rows of (layers, rows, length, d_model). */
function picked(ort, tensor, rows) {
  const [layers, before, length, width] = tensor.dims;
  const size = length * width;
  const data = new Float32Array(layers * rows.length * size);
  for (let layer = 0; layer < layers; layer++) {
    rows.forEach((row, at) => data.set(tensor.data.subarray((layer * before + row) * size, (layer * before + row + 1) * size), (layer * rows.length + at) * size));
  }
  return new ort.Tensor("float32", data, [layers, rows.length, length, width]);
}
