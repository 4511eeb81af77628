// The beam as a tree: every hypothesis that was kept, dropped or finished, step by step, as in insight/beams.py.

import { lengthPenalty } from "./beam.js";

/** The choices of a beam search at each step, best first; for `beam` of a record. */
export class BeamTree {
  constructor(beamSize, alpha) {
    this.beamSize = beamSize;
    this.alpha = alpha;
    this.steps = [];
    this.result = null;
    this.finished = [];
    this.beam = []; // for each place of the beam, the number of its candidate in the last step
  }

  /** To be given to `beamSearch`. */
  watch = (candidates) => {
    const step = candidates.map(({ place, token, score, ended, kept }) => {
      const fate = ended ? "finished" : kept >= 0 ? "kept" : "dropped";
      return { parent: this.steps.length ? this.beam[place] : null, id: token, score, fate };
    });
    this.beam = candidates.flatMap(({ kept }, number) => (kept >= 0 ? [number] : []));
    this.steps.push(step);
  };

  /** The tokens of a candidate, from the first on. */
  ids(step, number) {
    const ids = [];
    for (let at = number; at !== null; step--) {
      const candidate = this.steps[step][at];
      ids.unshift(candidate.id);
      at = candidate.parent;
    }
    return ids;
  }

  /** To be called when the search is done: lists what has finished, and finds what became the translation. */
  end(hypothesis, eosId, decode) {
    const finished = this.steps.flatMap((candidates, step) =>
      candidates.flatMap(({ fate, score }, number) =>
        fate === "finished"
          ? [{ step, number, text: decode(this.ids(step, number).slice(0, -1)), score, ranking: score / lengthPenalty(step + 1, this.alpha) }]
          : [],
      ),
    );
    finished.sort((one, other) => other.score - one.score);
    const [likeliest, rest] = [finished.slice(0, this.beamSize), finished.slice(this.beamSize)];
    this.finished = [...likeliest.toSorted((one, other) => other.ranking - one.ranking), ...rest];
    const ended = hypothesis.stopped === "eos";
    const ids = ended ? [...hypothesis.ids, eosId] : hypothesis.ids;
    const step = ids.length - 1;
    (this.steps[step] ?? []).forEach(({ fate }, number) => {
      if (fate === (ended ? "finished" : "kept") && `${this.ids(step, number)}` === `${ids}`) this.result = [step, number];
    });
  }

  /** The form that a record has. vocabulary: pieces by id. */
  toRecord(vocabulary) {
    const steps = this.steps.map((step) => step.map((candidate) => ({ ...candidate, piece: vocabulary[candidate.id] })));
    return { beam_size: this.beamSize, length_penalty: this.alpha, steps, result: this.result, finished: this.finished };
  }
}
