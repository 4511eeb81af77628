// A priority queue: a binary heap in an array, in which each element comes before the two that are its children.

export class Agenda {
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
