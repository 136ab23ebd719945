// What is wrong with a call is said by a WeftError that names it; test_node.py starts the gateways.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";

import { connect as connectAnyhow } from "../../src/weft/static/weft.js";
import { refusal } from "./awaiting.mjs";

const { WEFT_URL, WEFT_LOCKED_URL } = process.env;
const open = [];

async function connect(...given) {
  const connection = await connectAnyhow(...given);
  open.push(connection);
  return connection;
}

afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.close()));
});

for (const url of ["127.0.0.1:7411", "localhost:7411", "[::1]:7411", "not an address", "ftp://127.0.0.1", undefined]) {
  test(`${url} is no URL of a gateway`, async () => {
    const error = await connectAnyhow(url).catch((failed) => failed);
    assert.deepEqual([error.name, error.number], ["BadOption", 1005]);
    assert.match(error.message, new RegExp(String(url).replace(/[[\]]/g, "\\$&")));
  });
}

test("options that there are not are refused, and those that there are named", async () => {
  const weft = await connect(WEFT_URL);
  const wrong = { bogus: 1 };
  const room = await weft.openChannel("options.room");
  for (const call of [
    () => weft.subscribe("/a", () => {}, wrong),
    () => weft.publish("/a", 1, wrong),
    () => weft.request("/a", 1, wrong),
    () => weft.openChannel("options.a", wrong),
    () => weft.joinChannel("options.a", wrong),
    () => room.subscribe("/a", () => {}, wrong),
    () => room.publish("/a", 1, wrong),
    () => room.request("/a", 1, wrong),
  ]) {
    assert.deepEqual(await refusal(call()), ["BadOption", 1005], String(call));
  }
  const error = await weft.subscribe("/a", () => {}, { subpath: true }).catch((failed) => failed);
  assert.match(error.message, /subpath\b.*subpaths/);
});

test("bytes arrive as bytes, and a Map is refused where it is given", async () => {
  const weft = await connect(WEFT_URL);
  const arrived = new Promise((resolve) => weft.subscribe("/bytes", ({ data }) => resolve(data)));
  assert.deepEqual(await refusal(weft.publish("/bytes", { map: new Map() })), ["BadField", 1002]);
  await weft.publish("/bytes", { some: Uint8Array.of(104, 105) });
  assert.deepEqual(await arrived, { some: { $blob: "aGk=" } });
});

for (const transport of ["websocket", "sse", "poll"]) {
  test(`a key that is missing or wrong is said to be by ${transport}`, async () => {
    for (const key of [undefined, "wk_wrong"]) {
      const refused = refusal(connectAnyhow(WEFT_LOCKED_URL, { transports: [transport], key }));
      assert.deepEqual(await refused, ["BadKey", 4006]);
    }
  });
}
