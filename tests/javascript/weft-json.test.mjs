// What data is as JSON.

import assert from "node:assert/strict";
import { test } from "node:test";

import { textOf } from "../../src/weft/static/weft-json.js";

const said = (data) => JSON.parse(textOf(data));
const HELLO = { $blob: "aGVsbG8=" };

test("bytes are blobs, wherever they are", () => {
  const bytes = new TextEncoder().encode("hello");
  const around = new TextEncoder().encode("-hello-");
  assert.deepEqual(said(bytes), HELLO);
  assert.deepEqual(said(bytes.buffer), HELLO);
  assert.deepEqual(said({ all: [new DataView(bytes.buffer), Buffer.from("hello")] }), { all: [HELLO, HELLO] });
  assert.deepEqual(said(around.subarray(1, 6)), HELLO);
  assert.deepEqual(said(new Uint8Array()), { $blob: "" });
});

test("many bytes are one blob", () => {
  const bytes = Uint8Array.from({ length: 300_000 }, (_, at) => at % 251);
  assert.deepEqual(new Uint8Array(Buffer.from(said(bytes).$blob, "base64")), bytes);
});

for (const data of [new Map([[1, 2]]), new Set(), /x/, Promise.resolve(), new Float64Array(2), new Error("x")]) {
  const kind = Object.prototype.toString.call(data).slice(8, -1);
  test(`a ${kind} is refused, not emptied`, () => {
    assert.throws(() => textOf(data), { name: "BadField", number: 1002 });
    assert.throws(() => textOf({ deep: [{ here: data }] }), { name: "BadField", message: new RegExp(`"here".* ${kind}`) });
  });
}

test("what knows how to be said is asked", () => {
  class Quote {
    bid = 1;
  }
  class Named extends Map {
    toJSON = () => ["named"];
  }
  assert.deepEqual(said([new Quote(), new Named(), new Date(0)]), [{ bid: 1 }, ["named"], "1970-01-01T00:00:00.000Z"]);
});

test("what JSON cannot say at all is refused", () => {
  const circle = {};
  circle.self = circle;
  for (const data of [1n, { deep: 1n }, () => {}, Symbol("s"), circle]) {
    assert.throws(() => textOf(data), { name: "BadField" });
  }
  assert.equal(textOf(undefined), "");
});
