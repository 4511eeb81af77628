// The likeliest pieces of a text (Kudo, 2018): the path with the largest sum of log-probabilities, found from left to right
// by the best path to each place. As sentencepiece's unigram_model.cc, with numbers of 32 bits as there, so that equal
// sums are equal here too.

import { Beginnings, characterEnd } from "./beginnings.js";

/** Difference in log-probability between a character without a piece and the least likely piece. */
const UNKNOWN_PENALTY = 10;
/** Sums beyond start again from zero. */
const LARGEST_SUM = 100000;

export class Unigram {
  constructor({ pieces, scores, control, user_defined: userDefined, unused, byte, unk_id: unkId }) {
    const others = new Set([...control, ...unused, ...byte, unkId]);
    const wanted = pieces.map((piece, id) => [piece, id]).filter(([, id]) => !others.has(id));
    this.pieces = new Beginnings(wanted);
    this.scores = Float32Array.from(scores);
    const special = new Set(userDefined);
    const normal = wanted.filter(([, id]) => !special.has(id)).map(([, id]) => this.scores[id]);
    this.unkScore = Math.fround(normal.reduce((least, score) => Math.min(least, score), Infinity) - UNKNOWN_PENALTY);
    for (const id of userDefined) this.scores[id] = 0.1 * (new TextEncoder().encode(pieces[id]).length - 1);
    this.unkId = unkId;
  }

  /** -> [{start, end, id}], one after the other; unkId for a character without a piece */
  segment(text) {
    const sums = new Float32Array(text.length + 1); // of the best path that ends at each place
    const starts = new Int32Array(text.length + 1).fill(-1); // of its last piece
    const ids = new Int32Array(text.length + 1);
    let furthest = 0;
    for (let start = 0; start < text.length; start = characterEnd(text, start)) {
      if (Math.abs(sums[start]) > LARGEST_SUM) {
        const sum = sums[start];
        for (let at = start; at <= furthest; at += 1) if (at === start || starts[at] >= 0) sums[at] -= sum;
      }
      const offer = (end, id, score) => {
        furthest = Math.max(furthest, end);
        const sum = Math.fround(sums[start] + score);
        if (starts[end] < 0 || sum > sums[end]) {
          sums[end] = sum;
          starts[end] = start;
          ids[end] = id;
        }
      };
      const single = characterEnd(text, start);
      let isKnown = false;
      this.pieces.forEach(text, start, (end, id) => {
        offer(end, id, this.scores[id]);
        if (end === single) isKnown = true;
      });
      if (!isKnown) offer(single, this.unkId, this.unkScore);
    }
    const found = [];
    for (let end = text.length; end > 0; end = starts[end]) found.push({ start: starts[end], end, id: ids[end] });
    return found.reverse();
  }
}
