// Byte pair encoding (Sennrich et al., 2016): characters are joined, always the pair whose piece has the best score of all
// pairs in the text, the leftmost of equals. As sentencepiece's bpe_model.cc.

import { Beginnings, characterEnd } from "./beginnings.js";

export class Bpe {
  constructor({ pieces, scores, control, user_defined: userDefined, unused, byte, unk_id: unkId }) {
    const others = new Set([...control, ...byte, unkId]);
    this.ids = new Map(pieces.map((piece, id) => [piece, id]).filter(([, id]) => !others.has(id)));
    this.scores = scores;
    this.unused = new Set(unused);
    this.whole = new Beginnings(userDefined.map((id) => [pieces[id], id]));
    this.unkId = unkId;
  }

  /** -> [{start, end, id}], one after the other; unkId for a character without a piece */
  segment(text) {
    const symbols = this.#symbols(text);
    const splits = new Map(); // of pieces that aren't used, the length of the left part
    const agenda = new Agenda((one, other) => (one.score === other.score ? one.left < other.left : one.score > other.score));
    const offer = (left, right) => {
      const [one, other] = [symbols[left], symbols[right]];
      if (!one || !other || one.isWhole || other.isWhole) return;
      const piece = text.slice(one.start, other.end);
      const id = this.ids.get(piece);
      if (id === undefined) return;
      agenda.push({ left, right, score: this.scores[id], middle: one.end, end: other.end });
      if (this.unused.has(id)) splits.set(piece, one.end - one.start);
    };
    for (let right = 1; right < symbols.length; right += 1) offer(right - 1, right);
    for (let pair = agenda.pop(); pair; pair = agenda.pop()) {
      const [one, other] = [symbols[pair.left], symbols[pair.right]];
      if (one.end !== pair.middle || other.end !== pair.end) continue; // one of them has been joined to another
      one.end = other.end;
      one.next = other.next;
      other.end = other.start;
      if (symbols[one.next]) symbols[one.next].previous = pair.left;
      offer(one.previous, pair.left);
      offer(pair.left, one.next);
    }
    const found = [];
    for (let at = 0; at < symbols.length; at = symbols[at].next) {
      this.#addPieces(found, text, symbols[at].start, symbols[at].end, splits);
    }
    return found;
  }

  /** The characters of the text, and the pieces that are always whole. */
  #symbols(text) {
    const symbols = [];
    for (let start = 0; start < text.length; ) {
      const whole = this.whole.longest(text, start);
      const end = whole ? whole[0] : characterEnd(text, start);
      const at = symbols.length;
      symbols.push({ start, end, previous: at - 1, next: at + 1, isWhole: whole !== null });
      start = end;
    }
    return symbols;
  }

  /** Adds text[start:end] to what was found, split again where the piece isn't used. */
  #addPieces(found, text, start, end, splits) {
    const piece = text.slice(start, end);
    const id = this.ids.get(piece) ?? this.unkId;
    if (!this.unused.has(id)) {
      found.push({ start, end, id });
    } else if (splits.has(piece)) {
      const middle = start + splits.get(piece);
      this.#addPieces(found, text, start, middle, splits);
      this.#addPieces(found, text, middle, end, splits);
    } else {
      found.push({ start, end, id: this.unkId });
    }
  }
}

/** A priority queue: a binary heap in an array, in which each element comes before the two that are its children. */
class Agenda {
  /** isBefore(one, other): whether one is taken first */
  constructor(isBefore) {
    this.isBefore = isBefore;
    this.heap = [];
  }

  push(element) {
    const { heap, isBefore } = this;
    let at = heap.length;
    for (let parent = (at - 1) >> 1; at > 0 && isBefore(element, heap[parent]); parent = (at - 1) >> 1) {
      heap[at] = heap[parent];
      at = parent;
    }
    heap[at] = element;
  }

  /** Removes the first and returns it; undefined where there is none. */
  pop() {
    const { heap, isBefore } = this;
    const first = heap[0];
    const last = heap.pop();
    if (!heap.length) return first;
    let at = 0;
    for (let child = 1; child < heap.length; child = 2 * at + 1) {
      if (child + 1 < heap.length && isBefore(heap[child + 1], heap[child])) child += 1;
      if (!isBefore(heap[child], last)) break;
      heap[at] = heap[child];
      at = child;
    }
    heap[at] = last;
    return first;
  }
}
