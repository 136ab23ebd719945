import assert from "node:assert/strict";
import { test } from "node:test";

import { EventReader } from "../../src/weft/pages/weft-tunnels.js";

const TEXT =
  'retry: 2000\nevent: open\ndata: {"a": 1}\n\n:\n\nid: 7.1\ndata: one\r\ndata:two\r\n\r\n' +
  "id: 7.2\n\ndata: größe 東京\r\r";
const EVENTS = [
  { event: "open", data: '{"a": 1}' },
  { event: "message", data: "one\ntwo" },
  { event: "message", data: "größe 東京" },
];

/** What is read of the pieces; a last line feed settles whether a carriage return was half of two. */
function read(...pieces) {
  const reader = new EventReader();
  return [...pieces, "\n"].flatMap((piece) => reader.read(piece));
}

test("events are read with any kind of line end, and comments are not", () => {
  assert.deepEqual(read(TEXT), EVENTS);
});

test("events survive any split", () => {
  for (let cut = 0; cut <= TEXT.length; cut += 1) {
    assert.deepEqual(read(TEXT.slice(0, cut), TEXT.slice(cut)), EVENTS, `cut at ${cut}`);
  }
  assert.deepEqual(read(...TEXT), EVENTS);
});
