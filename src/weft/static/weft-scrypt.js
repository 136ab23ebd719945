// scrypt (RFC 7914): a key of a password that takes long and much memory to make, on purpose.
//
// Browsers have its outer part, PBKDF2, but not what is in between. The page goes on meanwhile: now and
// then it has its turn.

import { failure } from "./weft-errors.js";

// How long the page may have to wait for its turn, in milliseconds.
const TURN = 16;
// So many blocks are mixed between two looks at the clock.
const BLOCKS = 64;

/** A key of so many bytes, made of bytes; `cost` is a power of two, and `size` × 128 bytes a block. */
export async function scrypt(password, salt, { cost, size, parallel, length }) {
  const bytes = await derive(password, salt, parallel * 128 * size);
  for (let at = 0; at < parallel; at += 1) {
    await mix(bytes.subarray(at * 128 * size, (at + 1) * 128 * size), cost, size);
  }
  return derive(password, bytes, length);
}

/** What browsers give only to pages that came by https, or from this very machine. */
export function subtle() {
  const found = globalThis.crypto?.subtle;
  if (!found) throw failure("UsageError", "a password needs a page that came by https: the browser has no crypto otherwise");
  return found;
}

async function derive(password, salt, length) {
  const key = await subtle().importKey("raw", password, "PBKDF2", false, ["deriveBits"]);
  const how = { name: "PBKDF2", hash: "SHA-256", salt, iterations: 1 };
  return new Uint8Array(await subtle().deriveBits(how, key, 8 * length));
}

/** ROMix: fill the memory with a chain of blocks, then walk through it as the blocks say. */
async function mix(bytes, cost, size) {
  const words = 32 * size;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const block = new Uint32Array(words);
  const spare = new Uint32Array(words);
  const memory = new Uint32Array(words * cost);
  const turns = new Turns();
  for (let at = 0; at < words; at += 1) block[at] = view.getUint32(4 * at, true);
  for (let step = 0; step < cost; step += 1) {
    memory.set(block, step * words);
    mixBlock(block, spare, size);
    if (step % BLOCKS === 0) await turns.pass();
  }
  for (let step = 0; step < cost; step += 1) {
    const from = (block[words - 16] & (cost - 1)) * words;
    for (let at = 0; at < words; at += 1) block[at] ^= memory[from + at];
    mixBlock(block, spare, size);
    if (step % BLOCKS === 0) await turns.pass();
  }
  for (let at = 0; at < words; at += 1) view.setUint32(4 * at, block[at], true);
}

/** Lets the page have its turn once it has waited long enough. */
class Turns {
  #since = performance.now();

  async pass() {
    if (performance.now() - this.#since < TURN) return;
    await new Promise((resolve) => setTimeout(resolve));
    this.#since = performance.now();
  }
}

/** BlockMix: each piece of 16 words mixed with the one before; even ones first, odd ones after. */
function mixBlock(block, spare, size) {
  const last = 32 * size - 16;
  const piece = state;
  for (let at = 0; at < 16; at += 1) piece[at] = block[last + at];
  for (let index = 0; index < 2 * size; index += 1) {
    for (let at = 0; at < 16; at += 1) piece[at] ^= block[16 * index + at];
    salsa(piece);
    spare.set(piece, 16 * ((index >> 1) + (index & 1) * size));
  }
  block.set(spare);
}

const state = new Uint32Array(16);

/** Salsa20/8, in place. */
function salsa(words) {
  let a = words[0], b = words[1], c = words[2], d = words[3];
  let e = words[4], f = words[5], g = words[6], h = words[7];
  let i = words[8], j = words[9], k = words[10], l = words[11];
  let m = words[12], n = words[13], o = words[14], p = words[15];
  let t;
  for (let round = 0; round < 8; round += 2) {
    // Down the columns.
    t = (a + m) | 0; e ^= (t << 7) | (t >>> 25);
    t = (e + a) | 0; i ^= (t << 9) | (t >>> 23);
    t = (i + e) | 0; m ^= (t << 13) | (t >>> 19);
    t = (m + i) | 0; a ^= (t << 18) | (t >>> 14);
    t = (f + b) | 0; j ^= (t << 7) | (t >>> 25);
    t = (j + f) | 0; n ^= (t << 9) | (t >>> 23);
    t = (n + j) | 0; b ^= (t << 13) | (t >>> 19);
    t = (b + n) | 0; f ^= (t << 18) | (t >>> 14);
    t = (k + g) | 0; o ^= (t << 7) | (t >>> 25);
    t = (o + k) | 0; c ^= (t << 9) | (t >>> 23);
    t = (c + o) | 0; g ^= (t << 13) | (t >>> 19);
    t = (g + c) | 0; k ^= (t << 18) | (t >>> 14);
    t = (p + l) | 0; d ^= (t << 7) | (t >>> 25);
    t = (d + p) | 0; h ^= (t << 9) | (t >>> 23);
    t = (h + d) | 0; l ^= (t << 13) | (t >>> 19);
    t = (l + h) | 0; p ^= (t << 18) | (t >>> 14);
    // Along the rows.
    t = (a + d) | 0; b ^= (t << 7) | (t >>> 25);
    t = (b + a) | 0; c ^= (t << 9) | (t >>> 23);
    t = (c + b) | 0; d ^= (t << 13) | (t >>> 19);
    t = (d + c) | 0; a ^= (t << 18) | (t >>> 14);
    t = (f + e) | 0; g ^= (t << 7) | (t >>> 25);
    t = (g + f) | 0; h ^= (t << 9) | (t >>> 23);
    t = (h + g) | 0; e ^= (t << 13) | (t >>> 19);
    t = (e + h) | 0; f ^= (t << 18) | (t >>> 14);
    t = (k + j) | 0; l ^= (t << 7) | (t >>> 25);
    t = (l + k) | 0; i ^= (t << 9) | (t >>> 23);
    t = (i + l) | 0; j ^= (t << 13) | (t >>> 19);
    t = (j + i) | 0; k ^= (t << 18) | (t >>> 14);
    t = (p + o) | 0; m ^= (t << 7) | (t >>> 25);
    t = (m + p) | 0; n ^= (t << 9) | (t >>> 23);
    t = (n + m) | 0; o ^= (t << 13) | (t >>> 19);
    t = (o + n) | 0; p ^= (t << 18) | (t >>> 14);
  }
  words[0] += a; words[1] += b; words[2] += c; words[3] += d;
  words[4] += e; words[5] += f; words[6] += g; words[7] += h;
  words[8] += i; words[9] += j; words[10] += k; words[11] += l;
  words[12] += m; words[13] += n; words[14] += o; words[15] += p;
}
