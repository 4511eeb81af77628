// Positions, added to the embeddings: the paper's sine and cosine table (section 3.5) and learned vectors
// (model/positions.py).

import { matrix } from "./matrices.js";

/** PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i + 1) = cos of the same. */
export class SinusoidalPositions {
  constructor(dModel) {
    this.dModel = dModel;
  }

  /** The vectors of positions start .. start + length - 1. -> (length, d_model) */
  forward(length, start = 0) {
    const table = matrix(length, this.dModel);
    for (let column = 0; column < this.dModel; column++) {
      const even = column - (column % 2); // 2i
      const wave = column % 2 ? Math.cos : Math.sin;
      const speed = 10000 ** (even / this.dModel);
      for (let row = 0; row < length; row++) table.values[row * this.dModel + column] = wave((start + row) / speed);
    }
    return table;
  }
}

/** One trained vector for each of `max_length` positions. */
export class LearnedPositions {
  /** weight: (max_length, d_model) */
  constructor(weight) {
    this.weight = weight;
  }

  /** The vectors of positions start .. start + length - 1. -> (length, d_model) */
  forward(length, start = 0) {
    const { rows, columns, values } = this.weight;
    if (start + length > rows) throw new Error(`a sequence of ${start + length} positions is longer than max_length=${rows}`);
    return matrix(length, columns, values.slice(start * columns, (start + length) * columns));
  }
}
