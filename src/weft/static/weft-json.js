// What is said as JSON: bytes as blobs, and nothing that JSON would empty without a word.

import { failure } from "./weft-errors.js";

const TAG = /^\[object (.*)\]$/;
const BYTES = ["Uint8Array", "Uint8ClampedArray", "ArrayBuffer", "SharedArrayBuffer", "DataView"];
// JSON makes `{}` of each, or an object of its numbers.
const REFUSED = [
  ...["Map", "Set", "WeakMap", "WeakSet", "WeakRef", "Promise", "RegExp", "Error", "Blob", "File", "FormData"],
  ...["Int8Array", "Int16Array", "Uint16Array", "Int32Array", "Uint32Array", "Float16Array", "Float32Array"],
  ...["Float64Array", "BigInt64Array", "BigUint64Array"],
];
// As many arguments as any engine takes.
const PIECE = 8192;

/** The text of some data; "" if there is none. */
export function textOf(data) {
  if (data === undefined) return "";
  let text;
  try {
    text = JSON.stringify(data, replaced);
  } catch (error) {
    throw error.number ? error : failure("BadField", `the data cannot be said as JSON: ${error.message}`);
  }
  if (text === undefined) throw failure("BadField", `a ${typeof data} cannot be said as JSON`);
  return text;
}

/** Bytes as the gateway knows them. */
export function blobOf(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; at += PIECE) text += String.fromCharCode(...bytes.subarray(at, at + PIECE));
  return { $blob: btoa(text) };
}

/** Called with each value and the name it has in `this`, what it was before its toJSON() was asked. */
function replaced(name, value) {
  const held = this[name];
  if (typeof held !== "object" || held === null) return value;
  const kind = TAG.exec(Object.prototype.toString.call(held))[1];
  if (BYTES.includes(kind)) return blobOf(bytesOf(held));
  if (REFUSED.includes(kind) && typeof held.toJSON !== "function") {
    const where = name === "" ? "the data is" : `the field ${JSON.stringify(name)} of the data is`;
    throw failure("BadField", `${where} a ${kind}, which JSON has no word for: give its content as an object, a list or bytes`);
  }
  return value;
}

function bytesOf(held) {
  return ArrayBuffer.isView(held) ? new Uint8Array(held.buffer, held.byteOffset, held.byteLength) : new Uint8Array(held);
}
