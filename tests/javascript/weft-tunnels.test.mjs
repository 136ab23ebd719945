import assert from "node:assert/strict";
import { afterEach, test } from "node:test";

import { EventReader } from "../../src/weft/static/weft-tunnels.js";
import { connect } from "../../src/weft/static/weft.js";
import { next, refusal, until } from "./awaiting.mjs";
import { OddGateway } from "./odd_gateway.mjs";

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

const open = [];

async function talking() {
  const gateway = await OddGateway.open();
  open.push(gateway);
  const weft = await connect(gateway.url, { transports: ["sse"] });
  open.unshift(weft);
  return { gateway, weft };
}

afterEach(async () => {
  for (const each of open.splice(0)) await each.close();
});

const overloaded = { number: 3007, name: "Overloaded", text: "the journal must be written first" };

test("what a gateway could not take yet is said again, and only that", async () => {
  const { gateway, weft } = await talking();
  gateway.instead = [() => [202, {}, 1], (all) => [503, { error: overloaded, at: 2, ok: 2 }, Math.min(2, all.length)]];
  const said = [1, 2, 3, 4, 5].map((data) => weft.publish("/a", data));
  assert.deepEqual(await Promise.all(said), ["7.1", "7.2", "7.3", "7.4", "7.5"]);
  assert.deepEqual(gateway.taken, [1, 2, 3, 4, 5]);
});

test("a gateway that has not the tunnel any more is told again what it was told", async () => {
  const { gateway, weft } = await talking();
  const error = { number: 4003, name: "NotYours", text: "this tunnel is not yours, or no longer there" };
  gateway.instead = [() => [403, { error, at: 0, ok: 0 }, 0]];
  assert.equal(await weft.publish("/a", 1), "7.1");
  assert.deepEqual([gateway.taken, gateway.attached.length], [[1], 2]);
});

test("what something in between refuses is in doubt", async () => {
  const { gateway, weft } = await talking();
  gateway.instead = [() => [502, {}, 0]];
  assert.deepEqual(await refusal(weft.publish("/a", 1)), ["ConnectionLost", 3000]);
});

test("what is repeated is heard once, and the last that came is named", async () => {
  const { gateway, weft } = await talking();
  const got = [];
  await weft.subscribe("/a", ({ id }) => got.push(id));
  const tell = (number) => gateway.tell({ id: `7.${number}`, path: "/a", data: number });
  [1, 2, 3].forEach(tell);
  await until(() => got.length === 3, "the messages");
  const back = next(weft, "status", ({ state, isResumed }) => state === "connected" && isResumed);
  gateway.cut();
  await back;
  tell(4);
  await until(() => got.length === 4, "the next");
  assert.deepEqual(got, ["7.1", "7.2", "7.3", "7.4"]);
  assert.deepEqual(gateway.attached, [null, "7.3"]);
});

test("a stream that is ended for good is not opened again", async () => {
  const { gateway, weft } = await talking();
  const closed = next(weft, "status", ({ state }) => state === "closed");
  gateway.end("BadKey");
  assert.equal((await closed).error.name, "BadKey");
  assert.equal(gateway.attached.length, 1);
});

test("a stream that another took over is opened again", async () => {
  const { gateway, weft } = await talking();
  const back = next(weft, "status", ({ state }) => state === "connected");
  gateway.end("replaced");
  await back;
  assert.equal(gateway.attached.length, 2);
});
