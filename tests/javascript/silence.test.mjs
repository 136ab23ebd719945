// A network that dies without a word, by one transport; test_node.py says where the gateways are.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";

// What a browser has and Node has not: events of the page and of its document.
const page = new EventTarget();
globalThis.addEventListener = page.addEventListener.bind(page);
globalThis.removeEventListener = page.removeEventListener.bind(page);
globalThis.document = Object.assign(new EventTarget(), { visibilityState: "visible" });

const { connect: connectAnyhow } = await import("../../src/weft/static/weft.js");
const { next, until } = await import("./awaiting.mjs");
const { CuttingProxy } = await import("./cutting_proxy.mjs");

const { WEFT_URL, WEFT_TRANSPORT: transport } = process.env;
const open = [];

async function connect(url, options) {
  const connection = await connectAnyhow(url, { service: "silent", transports: [transport], ...options });
  open.push(connection);
  return connection;
}

async function behindProxy(options) {
  const proxy = await CuttingProxy.before(WEFT_URL);
  open.push(proxy);
  return [proxy, await connect(proxy.url, options)];
}

afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.close()));
});

test("a network that dies without a word is noticed, and loses nothing", async () => {
  const [proxy, weft] = await behindProxy({ heartbeat: 500 });
  const [got, gaps] = [[], []];
  weft.on("gap", (gap) => gaps.push(gap));
  await weft.subscribe("/numbers", ({ data }) => got.push(data));
  const from = await connect(WEFT_URL);
  await from.publish("/numbers", 1);
  await until(() => got.length === 1, "the first");
  const lost = next(weft, "status", ({ state }) => state === "reconnecting");
  const back = next(weft, "status", ({ state }) => state === "connected");
  proxy.stall();
  for (const number of [2, 3, 4]) await from.publish("/numbers", number);
  assert.equal((await lost).reason.name, "Silent");
  proxy.revive();
  assert.equal((await back).isResumed, true);
  await from.publish("/numbers", 5);
  await until(() => got.length === 5, "the others");
  assert.deepEqual([got, gaps], [[1, 2, 3, 4, 5], []]);
});

for (const [event, target] of [["visibilitychange", globalThis.document], ["online", page]]) {
  test(`a connection is checked at once on ${event}`, async () => {
    const [proxy, weft] = await behindProxy({ heartbeat: 3_600_000 });
    const lost = next(weft, "status", ({ state }) => state === "reconnecting");
    proxy.stall();
    target.dispatchEvent(new Event(event));
    assert.equal((await lost).reason.name, "Silent");
  });
}

test("a connection that is alive survives a check", async () => {
  const states = [];
  const [, weft] = await behindProxy({ heartbeat: 100 });
  weft.on("status", ({ state }) => states.push(state));
  page.dispatchEvent(new Event("online"));
  const got = [];
  await weft.subscribe("/alive", ({ data }) => got.push(data));
  for (let number = 0; number < 20; number += 1) await weft.request("/_WEFT/ask/status");
  await weft.publish("/alive", 1);
  await until(() => got.length === 1, "the message");
  assert.deepEqual(states, []);
});
