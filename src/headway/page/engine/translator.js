// The front door: raw text in, a translation or a record out, as in translator/translator.py and inspecting.py.

import { analysesOf, names as namesOfAnalyses } from "./analyses.js";
import { beamSearch } from "./beam.js";
import { BeamTree } from "./beams.js";
import { Codec, checkText, idsOf } from "../tokenizer/codec.js";
import { greedy } from "./greedy.js";
import { openModel } from "./loading.js";
import { recordOf, withWords } from "./record.js";
import { recordPass } from "./recording.js";
import { engineOf } from "./recomputing.js";
import { loadTokenizer } from "../tokenizer/tokenizer.js";
import { Refused, editedText } from "./what_if.js";

/** The least and the most of options, as in decoding/options.py. */
const BOUNDS = { beamSize: [1, 1000], maxLength: [1, 2 ** 20], nBest: [1, 1000], noRepeatNgram: [0, 2 ** 20] };
const LARGEST_PENALTY = 10;

export class Translator {
  /** bytes: of a model file; withKernel: whether WebAssembly is tried. Raises DamagedModel. */
  constructor(bytes, withKernel = true) {
    const { header, model, kernel } = openModel(bytes, withKernel);
    const [source, target] = [header.tokenizers.source, header.tokenizers.target ?? header.tokenizers.source];
    const tokenizer = loadTokenizer(source);
    Object.assign(this, { header, model, kernel });
    this.codec = new Codec(header, tokenizer, target === source ? tokenizer : loadTokenizer(target));
  }

  /** Information for a page before it translates. */
  get about() {
    const { source_language, target_language, config, decoding, examples, card, head_importance } = this.header;
    return { source_language, target_language, config, decoding, examples, card, tags: this.codec.tags, kernel: this.kernel, analyses: namesOfAnalyses(head_importance) };
  }

  /** options: beamSize, lengthPenalty, maxLength, nBest, noRepeatNgram; those of the model where they are left out.
   * -> {text, score, stopped, tokens, source_tokens, alternatives}, without a translation `score` is null. Raises Refused. */
  translate(text, options = {}) {
    const search = this.searchOptions(options);
    const source = this.codec.read(text);
    const nothing = { text: "", score: null, tokens: [], source_tokens: [], alternatives: [] };
    if (!source) return { ...nothing, stopped: "too_long" };
    if (source.tokens.length === 1) return { ...nothing, stopped: "blank" };
    const [best, ...others] = this.find(this.engine([]), source, search).map(({ ids, score, stopped }) => {
      const found = this.codec.found(ids);
      return { text: found.text, score, stopped, tokens: found.tokens.slice(0, -1), source_tokens: source.tokens.slice(0, -1) };
    });
    return { ...best, alternatives: others };
  }

  /** The record of docs/record.md. options: also `edits` that are made before; `cases` to be tried beside, lists of edits;
   * `translation` to look into in place of the model's own; `analyses`: those of analyses.js; `order`: whether it has two
   * sentences of the same words, which were chosen when the model was exported; `arrays`: "all", "layers" (without the
   * logits), "attention", "none", or their names. Raises Refused. */
  inspect(text, { edits = [], cases = [], translation = null, analyses = [], order = false, arrays = "layers", ...options } = {}) {
    checkText(text);
    const search = { ...this.searchOptions(options), nBest: 1 };
    const [tag, plain] = this.codec.source.splitTag(text);
    const source = (one) => this.readable(tag ? `${tag} ${one}` : one);
    const idsOfSource = (one) => idsOf(this.codec.source.splitTag(one)[0] ? this.readable(one) : source(one));
    const given = translation === null ? null : this.codec.given(translation);
    const read = source(editedText(plain, edits));
    const [engine, beam] = [this.engine(edits), this.beamOf(search)];
    const target = given ?? this.codec.found(this.find(engine, read, search, beam)[0].ids);
    const pass = recordPass(engine.model, idsOf(read), idsOf(target));
    const analysed = this.analyses(analyses, engine.model, read, target, pass, search, idsOfSource);
    const record = recordOf({
      about: this.header,
      vocabulary: this.codec.target.vocabulary,
      source: { ...read, original: plain },
      target: { ...target, given: given !== null },
      beam: given ? null : beam,
      arrays: pass,
      wanted: arrays,
    });
    return {
      ...record,
      analyses: analysed.analyses,
      arrays: { ...record.arrays, ...analysed.arrays },
      edits,
      before: edits.length ? this.outcome([], source(plain), search, given) : null,
      cases: cases.map((tried) => this.whatIf(tried, source(editedText(plain, tried)), target, search)),
      order: order ? this.header.order : null,
    };
  }

  /** -> {analyses, arrays} of a record. Raises Refused. */
  analyses(asked, model, source, target, arrays, { maxLength }, idsOfSource) {
    if (asked.length && model.seesAhead) throw new Refused("analyses: they read the whole translation at once, which needs the look-ahead mask");
    return analysesOf(asked, {
      model,
      sourceIds: idsOf(source),
      targetIds: idsOf(target),
      arrays,
      codec: this.codec,
      idsOfSource,
      measured: this.header.head_importance,
      never: this.header.never_generated,
      maxLength: this.codec.lengthCap(source.tokens.length - 1, maxLength),
    });
  }

  /** The effect of edits: for `cases` of a record. */
  whatIf(edits, source, before, search) {
    const after = this.outcome(edits, source, search);
    return { edits, source: source.text, after, before: this.outcome(edits, source, search, before) };
  }

  /** {text, score, words} of the translation that the search finds, or of the given one. */
  outcome(edits, source, search, given = null) {
    const engine = this.engine(edits);
    const [found] = given ? [] : this.find(engine, source, search);
    const target = given ?? this.codec.found(found.ids);
    const scores = engine.score(idsOf(source), [this.model.config.bos_id, ...idsOf(target)]);
    return { text: target.text, score: found?.score ?? scores.reduce((sum, score) => sum + score, 0), words: wordsOf(target, scores) };
  }

  engine(edits) {
    return engineOf(this.model, edits, this.header.never_generated);
  }

  /** The hypotheses, best first. */
  find(engine, source, { beamSize, lengthPenalty, maxLength, nBest, noRepeatNgram }, beam = null) {
    const cap = this.codec.lengthCap(source.tokens.length - 1, maxLength);
    if (beamSize === 1) return [greedy(engine, idsOf(source), cap, noRepeatNgram)];
    const options = { beamSize, nBest, alpha: lengthPenalty, noRepeatNgram, watch: beam?.watch };
    const found = beamSearch(engine, idsOf(source), cap, options);
    beam?.end(found[0], engine.eosId, (ids) => this.codec.decode(ids));
    return found;
  }

  beamOf({ beamSize, lengthPenalty }) {
    return beamSize === 1 ? null : new BeamTree(beamSize, lengthPenalty);
  }

  readable(text) {
    const source = this.codec.read(text);
    if (source && source.tokens.length > 1) return source;
    throw new Refused(`this text can't be inspected: 1 to ${this.codec.longestSource} tokens are needed`);
  }

  searchOptions(options) {
    const { beam_size, length_penalty, max_length, no_repeat_ngram, n_best } = this.header.decoding;
    const own = { beamSize: beam_size, lengthPenalty: length_penalty, maxLength: max_length, noRepeatNgram: no_repeat_ngram, nBest: n_best };
    const unknown = Object.keys(options).find((name) => !Object.hasOwn(own, name));
    if (unknown) throw new Refused(`${unknown} is not an option of searching`);
    const search = { ...own, ...options };
    for (const [name, [least, most]] of Object.entries(BOUNDS)) {
      const value = name === "maxLength" ? (search.maxLength ?? least) : search[name];
      if (!Number.isInteger(value) || value < least || value > most) throw new Refused(`${name}=${value}: must be a whole number from ${least} to ${most}`);
    }
    const { lengthPenalty } = search;
    if (!(lengthPenalty >= 0 && lengthPenalty <= LARGEST_PENALTY)) throw new Refused(`lengthPenalty=${lengthPenalty}: must be a number from 0 to ${LARGEST_PENALTY}`);
    return { ...search, nBest: Math.min(search.nBest, search.beamSize) };
  }
}

/** The words of a translation, without <eos>: {text, probability}. scores: of its tokens. */
function wordsOf({ text, tokens }, scores) {
  const characters = [...text];
  const words = [];
  withWords(tokens.slice(0, -1)).forEach(({ word, start, end }, place) => {
    if (!words[word]) words[word] = { start, score: 0 };
    words[word].end = end;
    words[word].score += scores[place];
  });
  return words.map(({ start, end, score }) => ({ text: characters.slice(start, end).join(""), probability: Math.exp(score) }));
}
