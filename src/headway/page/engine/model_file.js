// Reads the file of a model, which model_file.py writes and describes.

import { matrix } from "./matrices.js";

const MAGIC = "HEADWAY2";
const CHECKED_FROM = 12;
const REMAINDERS = Uint32Array.from({ length: 256 }, (_, byte) => {
  for (let bit = 0; bit < 8; bit++) byte = byte & 1 ? 0xedb88320 ^ (byte >>> 1) : byte >>> 1;
  return byte;
});

/** The model file is damaged, or is none. */
export class DamagedModel extends Error {}

/** bytes: of the file -> {header, numbers}: numbers are the bytes of all tensors. Raises DamagedModel. */
export function openModelFile(bytes) {
  if (ascii(bytes.subarray(0, 8)) !== MAGIC) throw new DamagedModel("this is not a headway model for the web");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < 16 || checksum(bytes.subarray(CHECKED_FROM)) !== view.getUint32(8, true)) throw new DamagedModel("the model file is damaged: its checksum is wrong; get it once more");
  const length = view.getUint32(CHECKED_FROM, true);
  const start = CHECKED_FROM + 4;
  return { header: JSON.parse(ascii(bytes.subarray(start, start + length))), numbers: bytes.subarray(start + length) };
}

/** CRC-32, as zlib has it. */
function checksum(bytes) {
  let sum = -1;
  for (let at = 0; at < bytes.length; at++) sum = REMAINDERS[(sum ^ bytes[at]) & 255] ^ (sum >>> 8);
  return ~sum >>> 0;
}

/** The size of the weights: their numbers, their vectors and matrices, and their longest side. */
export function sizeOf({ tensors }) {
  const sizes = tensors.map(({ shape }) => shape.reduce((size, length) => size * length, 1));
  const widest = Math.max(...tensors.flatMap(({ shape }) => shape));
  return { numbers: sizes.reduce((sum, size) => sum + size, 0), vectors: tensors.length, widest };
}

/** All weights in float32, by name: matrices, and (size,) for biases and norms. allocate(size): memory for them. */
export function readWeights({ header, numbers }, allocate) {
  const weights = new Map();
  for (const { name, shape, precision, offset, scales } of header.tensors) {
    const [rows, columns] = shape.length === 2 ? shape : [1, shape[0]];
    const values = allocate(rows * columns);
    const place = numbers.byteOffset + offset;
    if (precision === "int8") fromInt8(numbers, place, numbers.byteOffset + scales, values, columns);
    else if (precision === "float16") fromHalves(new Uint16Array(numbers.buffer, place, values.length), values);
    else values.set(new Float32Array(numbers.buffer, place, values.length));
    weights.set(name, shape.length === 2 ? matrix(rows, columns, values) : values);
  }
  return weights;
}

function fromInt8({ buffer }, place, scalesPlace, values, columns) {
  const whole = new Int8Array(buffer, place, values.length);
  const scales = new Float32Array(buffer, scalesPlace, values.length / columns);
  for (let row = 0, at = 0; row < scales.length; row++) {
    for (const [scale, end] = [scales[row], at + columns]; at < end; at++) values[at] = whole[at] * scale;
  }
}

/** The exponent of float32 is moved by 112: a factor, for numbers with small exponents too. */
function fromHalves(halves, values) {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  for (let at = 0; at < halves.length; at++) {
    bits[at] = ((halves[at] & 0x8000) << 16) | ((halves[at] & 0x7fff) << 13);
    values[at] *= 2 ** 112;
  }
}

/** Texts of ASCII alone. */
function ascii(bytes) {
  const parts = [];
  for (let at = 0; at < bytes.length; at += 8192) parts.push(String.fromCharCode(...bytes.subarray(at, at + 8192)));
  return parts.join("");
}
