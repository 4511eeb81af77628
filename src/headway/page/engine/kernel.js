// The products by the kernel of WebAssembly, in whose memory the weights lie. x and y are copied there and back, which is
// little beside the weights that are read.

import { code } from "./kernel_code.js";
import { matrix } from "./matrices.js";
import { addBias, plainProducts } from "./products.js";

const PAGE = 65536;
const ALIGNED = 16;
const BLOCK = 16;
const ROWS = 5;

/** numbers: how many the weights are; vectors: how many weights there are; widest: the most inputs or outputs.
 * -> as plainProducts; null where there is no WebAssembly, or none with vectors. */
export function kernelProducts({ numbers, vectors, widest }) {
  const scratch = 4 * ROWS * widest;
  let end = 2 * scratch;
  const memory = openMemory(end + 4 * numbers + ALIGNED * vectors);
  if (!memory) return null;
  const kernel = memory.kernel;

  function allocate(size) {
    const place = end;
    end += Math.ceil((4 * size) / ALIGNED) * ALIGNED;
    return new Float32Array(memory.buffer, place, size);
  }

  function multiply(x, weight, bias) {
    if (x.columns % BLOCK) return plainProducts.multiply(x, weight, bias);
    const y = matrix(x.rows, weight.rows);
    for (let row = 0; row < x.rows; ) {
      const rows = x.rows - row >= ROWS ? ROWS : 1;
      new Float32Array(memory.buffer, 0, rows * x.columns).set(x.values.subarray(row * x.columns, (row + rows) * x.columns));
      kernel[rows === ROWS ? "five_rows" : "one_row"](0, weight.values.byteOffset, x.columns, weight.rows, scratch);
      y.values.set(new Float32Array(memory.buffer, scratch, rows * y.columns), row * y.columns);
      row += rows;
    }
    if (bias) addBias(y, bias);
    return y;
  }

  return { allocate, multiply };
}

/** -> {buffer, kernel}, or null */
function openMemory(bytes) {
  if (typeof WebAssembly === "undefined" || !WebAssembly.validate(code)) return null;
  const memory = new WebAssembly.Memory({ initial: Math.ceil(bytes / PAGE) });
  try {
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(code), { page: { memory } });
    return { buffer: memory.buffer, kernel: exports };
  } catch (problem) {
    if (problem instanceof WebAssembly.CompileError) return null; // the policy of the page, or of its host, forbids it
    throw problem;
  }
}
