// The record of a translation, as docs/record.md has it; its arrays are typed arrays: {dtype, shape, values}.

import { logSoftmax } from "./engine.js";
import { alignment, measureHeads } from "./heads.js";
import { likeliest, matrix, rowOf } from "./matrices.js";

const [FORMAT, FORMAT_VERSION] = ["headway-record", 1];
const TOP = 10;
const ALTERNATIVES = 4;
const SUBLAYERS = {
  encoder: "encoder.layers.{layer}.self_attention",
  decoder: "decoder.layers.{layer}.self_attention",
  cross: "decoder.layers.{layer}.cross_attention",
};

/** about: the header of the model file; source, target: {text, tokens}, also original and given; beam: a BeamTree or null;
 * arrays: of recordPass; wanted: which of them stay. */
export function recordOf({ about, vocabulary, source, target, beam, arrays, wanted }) {
  const attention = attentionOf(about.config, arrays);
  const steps = stepsOf(arrays.logits, target.tokens, vocabulary);
  return {
    format: FORMAT,
    format_version: FORMAT_VERSION,
    headway: about.headway,
    model: modelOf(about),
    source: { ...source, tokens: withWords(source.tokens) },
    target: { ...target, tokens: withWords(target.tokens), score: steps.reduce((sum, step) => sum + step.log_probability, 0) },
    start: { id: about.config.bos_id, piece: "<sos>" },
    alternatives: beam ? alternativesOf(beam, target.text) : [],
    steps,
    beam: beam?.toRecord(vocabulary) ?? null,
    attention: Object.fromEntries(attention.map(([kind, layers]) => [kind, aboutAttention(kind, layers, about.alignment)])),
    alignment: alignmentOf(attention, about.alignment, source.tokens),
    edits: [],
    before: null,
    cases: [],
    order: null,
    inspected_step: about.step,
    history: [],
    analyses: {},
    training: ["all", "layers"].includes(wanted) ? about.training : null,
    arrays: Object.fromEntries(Object.entries(arrays).filter(([name]) => isWanted(name, wanted))),
  };
}

function modelOf({ source_language, target_language, domain, config }) {
  const heads = config.decoder_num_heads ?? config.num_heads;
  const sizes = { decoder_num_heads: heads, decoder_d_ff: config.decoder_d_ff ?? config.d_ff };
  const [d_head, decoder_d_head] = [config.d_model / config.num_heads, config.d_model / heads];
  return { source_language, target_language, domain, config: { ...config, ...sizes }, d_head, decoder_d_head };
}

/** The weights of each layer by kind, of the kinds that the model has. */
function attentionOf(config, arrays) {
  const layers = { encoder: config.encoder_layers, decoder: config.decoder_layers, cross: config.decoder_layers };
  return Object.entries(SUBLAYERS).flatMap(([kind, name]) => {
    const found = Array.from({ length: layers[kind] }, (_, layer) => arrays[`${name.replace("{layer}", layer)}.weights`]);
    return found.length ? [[kind, found]] : [];
  });
}

function aboutAttention(kind, layers, aligner) {
  return { layers: layers.length, heads: layers[0].shape[0], names: SUBLAYERS[kind], measures: measureHeads(kind, layers, aligner) };
}

function alignmentOf(attention, aligner, [{ piece, end }]) {
  const [, cross] = attention.find(([kind]) => kind === "cross") ?? [];
  const tags = end === 0 && piece.startsWith(">>") ? 1 : 0; // nothing is aligned with them
  return cross ? alignment(cross, aligner, { first: tags }) : null;
}

/** The most probable tokens of each step. */
function stepsOf(logits, tokens, vocabulary) {
  const [rows, columns] = logits.shape;
  const all = matrix(rows, columns, logits.values);
  const logarithms = logSoftmax(all);
  return tokens.map(({ id }, step) => {
    const [row, own] = [rowOf(all, step), rowOf(logarithms, step)];
    const top = likeliest(row, TOP).map((best) => ({ id: best, piece: vocabulary[best], logit: row[best], probability: Math.exp(own[best]) }));
    return { log_probability: own[id], rank: row.reduce((count, logit) => count + (logit > row[id] ? 1 : 0), 0), top };
  });
}

/** The other translations that the beam has finished, best first, each text once. */
function alternativesOf({ finished }, best) {
  const others = new Map();
  for (const { text, score } of finished) if (text !== best && !others.has(text)) others.set(text, { text, score });
  return [...others.values()].slice(0, ALTERNATIVES);
}

function isWanted(name, wanted) {
  if (Array.isArray(wanted)) return wanted.includes(name);
  return { all: true, layers: name !== "logits", attention: name.endsWith(".weights"), none: false }[wanted];
}

/** Each token with the number of its word, as word_groups of insight/maps.py numbers them: a word begins at a piece with
 * `▁`, a control symbol stands alone, and pieces of which none has `▁` are words already. */
export function withWords(tokens) {
  const marked = tokens.some(({ piece }) => piece.startsWith("▁"));
  const control = ({ piece }) => ["<pad>", "<unk>", "<sos>", "<eos>", "<s>", "</s>"].includes(piece);
  let word = -1;
  return tokens.map((token, place) => {
    const begins = !marked || place === 0 || token.piece.startsWith("▁") || control(token) || control(tokens[place - 1]);
    if (begins) word += 1;
    return { ...token, word };
  });
}
