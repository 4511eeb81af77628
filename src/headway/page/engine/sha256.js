// SHA-256 (FIPS 180-4), because a page that doesn't come by TLS has no crypto.subtle.

const ROOTS = primes(64);
const CONSTANTS = Uint32Array.from(ROOTS, (prime) => fraction(Math.cbrt(prime)));
const FIRST = Uint32Array.from(ROOTS.slice(0, 8), (prime) => fraction(Math.sqrt(prime)));

/** bytes -> 32 bytes */
export function sha256(bytes) {
  const state = FIRST.slice();
  const words = new Uint32Array(64);
  const whole = bytes.length - (bytes.length % 64);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let start = 0; start < whole; start += 64) mix(state, words, view, start);
  const last = ending(bytes.subarray(whole), bytes.length);
  for (let start = 0; start < last.byteLength; start += 64) mix(state, words, last, start);
  const sum = new DataView(new ArrayBuffer(32));
  state.forEach((word, at) => sum.setUint32(4 * at, word));
  return new Uint8Array(sum.buffer);
}

/** The rest of a message with its padding and its length in bits. */
function ending(rest, length) {
  const view = new DataView(new ArrayBuffer(rest.length < 56 ? 64 : 128));
  rest.forEach((byte, at) => view.setUint8(at, byte));
  view.setUint8(rest.length, 0x80);
  view.setBigUint64(view.byteLength - 8, BigInt(length) * 8n);
  return view;
}

function mix(state, words, view, start) {
  for (let at = 0; at < 16; at++) words[at] = view.getUint32(start + 4 * at);
  for (let at = 16; at < 64; at++) {
    const [early, late] = [words[at - 15], words[at - 2]];
    const one = ((early >>> 7) | (early << 25)) ^ ((early >>> 18) | (early << 14)) ^ (early >>> 3);
    const other = ((late >>> 17) | (late << 15)) ^ ((late >>> 19) | (late << 13)) ^ (late >>> 10);
    words[at] = words[at - 16] + one + words[at - 7] + other;
  }
  let [a, b, c, d, e, f, g, h] = state;
  for (let at = 0; at < 64; at++) {
    const turned = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
    const added = (h + turned + ((e & f) ^ (~e & g)) + CONSTANTS[at] + words[at]) | 0;
    const other = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
    const most = (a & b) ^ (a & c) ^ (b & c);
    h = g;
    g = f;
    f = e;
    e = (d + added) | 0;
    d = c;
    c = b;
    b = a;
    a = (added + other + most) | 0;
  }
  [a, b, c, d, e, f, g, h].forEach((word, at) => (state[at] += word));
}

function primes(count) {
  const found = [];
  for (let number = 2; found.length < count; number++) if (found.every((prime) => number % prime)) found.push(number);
  return found;
}

/** The first 32 bits behind the point. */
function fraction(number) {
  return Math.floor((number - Math.floor(number)) * 2 ** 32);
}
