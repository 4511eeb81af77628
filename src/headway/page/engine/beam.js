// Beam search over an engine, on ids alone, with the length penalty of GNMT (Wu et al., 2016, equation 14), as in
// decoding/beam.py, of one sentence.

import { forbidden } from "./constraints.js";
import { likeliest, rowOf } from "./matrices.js";

/** lp(Y) = ((5 + |Y|) / 6) ** alpha; a hypothesis is ranked by its score divided by this. |Y| counts <eos>. */
export function lengthPenalty(length, alpha) {
  return ((5 + length) / 6) ** alpha;
}

/** The hypotheses that have ended. */
class Finished {
  constructor(beamSize, nBest, alpha, cap) {
    Object.assign(this, { beamSize, nBest, alpha, cap });
    this.hypotheses = [];
    this.leaderEnded = false;
  }

  /** One that is there already stays as it is. leads: it was the best candidate of its step. */
  add(hypothesis, leads = false) {
    this.leaderEnded ||= leads;
    if (this.hypotheses.every((other) => `${other.ids}` !== `${hypothesis.ids}`)) this.hypotheses.push(hypothesis);
  }

  /** The n best of the `beamSize` likeliest, best first. */
  ranked() {
    const likeliest = this.hypotheses.toSorted((one, other) => other.score - one.score).slice(0, this.beamSize);
    return likeliest.toSorted((one, other) => this.worth(other) - this.worth(one)).slice(0, this.nBest);
  }

  /** Whether the search shall go on, when `score` is the best of the hypotheses that do. That score only falls: at best it
   * stays as it is, and is divided by the penalty of the longest translation. Without a leader that ended, those that are
   * finished may all be worth little. */
  wantsMore(score) {
    if (this.hypotheses.length >= this.beamSize && this.leaderEnded) return false;
    if (this.hypotheses.length < this.nBest) return score > -Infinity;
    return score / lengthPenalty(this.cap + 1, this.alpha) > this.worth(this.ranked().at(-1));
  }

  worth({ ids, score }) {
    return score / lengthPenalty(ids.length + 1, this.alpha);
  }
}

/** The `nBest` hypotheses, best first; fewer where there are no more, none empty, each {ids, score, stopped}.
 *
 * source: ids with <eos>. At each step the `beamSize` likeliest continuations go on; one that is <eos> is finished. The
 * search is done when `beamSize` hypotheses are finished, one of them as the best candidate of its step, when none that goes
 * on can be one of the `nBest`, or when they have `maxLength` tokens: then <eos> is all that may follow, whatever its
 * probability. `watch` is called with every step's candidates: {place, token, score, ended, kept}, see `advance`. */
export function beamSearch(engine, source, maxLength, { beamSize, nBest = 1, alpha = 0, noRepeatNgram = 0, watch = null }) {
  const finished = new Finished(beamSize, nBest, alpha, maxLength);
  const state = engine.start(source);
  let beam = [{ ids: [], score: 0 }]; // best first; the score is the total log-probability
  for (;;) {
    const logProbabilities = engine.step(state, beam.map(({ ids }) => ids.at(-1) ?? engine.bosId));
    beam.forEach(({ ids }, row) => {
      for (const id of forbidden(ids, engine.eosId, noRepeatNgram)) rowOf(logProbabilities, row)[id] = -Infinity;
    });
    const before = beam;
    const candidates = advance(before, logProbabilities, engine.eosId, beamSize);
    watch?.(candidates);
    candidates.forEach(({ place, score, ended }, rank) => {
      if (ended) finished.add({ ids: before[place].ids, score, stopped: "eos" }, rank === 0);
    });
    const kept = candidates.filter((one) => one.kept >= 0);
    beam = kept.map(({ place, token, score }) => ({ ids: [...before[place].ids, token], score }));
    const length = before[0].ids.length;
    if (!finished.wantsMore(beam[0]?.score ?? -Infinity)) return finished.ranked();
    if (length === maxLength) {
      end(before, logProbabilities, engine.eosId, finished);
      return finished.ranked();
    }
    engine.select(state, kept.map(({ place }) => place));
  }
}

/** Ends each hypothesis, whatever the probability of <eos>. */
function end(beam, logProbabilities, eosId, finished) {
  beam.forEach(({ ids, score }, row) => {
    const total = score + rowOf(logProbabilities, row)[eosId];
    if (Number.isFinite(total)) finished.add({ ids, score: total, stopped: "max_length" });
  });
}

/** The choices of a step, best first: up to twice as many continuations as the beam is wide, of each hypothesis up
 * to one more than the beam is wide. Each is {place: of the hypothesis that it goes on from, token, score, ended: whether it
 * is finished, kept: its place in the beam after this step, -1 where it is dropped or finished}. */
function advance(beam, logProbabilities, eosId, beamSize) {
  const each = Math.min(beamSize + 1, logProbabilities.columns); // one of them may be <eos>
  const all = beam.flatMap(({ score }, place) => {
    const values = rowOf(logProbabilities, place);
    return likeliest(values, each).map((token) => ({ place, token, score: score + values[token] }));
  });
  const best = all.toSorted((one, other) => other.score - one.score).slice(0, 2 * beamSize);
  let places = 0;
  return best
    .filter(({ score }) => score > -Infinity)
    .map((one, rank) => {
      const ends = one.token === eosId;
      return { ...one, ended: ends && rank < beamSize, kept: !ends && places < beamSize ? places++ : -1 };
    });
}
