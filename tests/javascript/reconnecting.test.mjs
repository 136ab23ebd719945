// What ends a connection for good, and what does not, by WebSocket.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";

import { connect as connectAnyhow } from "../../src/weft/static/weft.js";
import { next, refusal, until } from "./awaiting.mjs";
import { CuttingProxy } from "./cutting_proxy.mjs";

const { WEFT_URL, WEFT_OTHER_URL, WEFT_STRICT_URL, WEFT_DRAINED_URL } = process.env;
const transports = ["websocket"];
const open = [];

async function connect(url, options) {
  const connection = await connectAnyhow(url, { transports, ...options });
  open.push(connection);
  return connection;
}

afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.close()));
});

test("a gateway that will not have it is not asked again", async () => {
  const weft = await connect(WEFT_STRICT_URL);
  const closed = next(weft, "status", ({ state }) => state === "closed");
  const flood = Array.from({ length: 200 }, (_, number) => weft.subscribe(`/flood/${number}`, () => {}));
  const { error } = await closed;
  assert.deepEqual([error.name, error.number], ["ControlFlood", 2008]);
  const refused = (await Promise.allSettled(flood)).filter(({ status }) => status === "rejected");
  assert.ok(refused.length > 0);
  assert.deepEqual(await refusal(weft.publish("/a")), ["NotOpen", 1006]);
});

test("a gateway that closes down is left for another", async () => {
  const proxy = await CuttingProxy.before(WEFT_DRAINED_URL);
  open.push(proxy);
  const weft = await connect(proxy.url);
  proxy.leadTo(WEFT_OTHER_URL);
  const back = next(weft, "status", ({ state }) => state === "connected");
  const control = await connect(WEFT_URL, { service: "control" });
  await control.publish("/drain");
  await back;
  assert.equal(weft.welcome.gateway, "other");
});

test("a gateway that falls silent is given up", async () => {
  const proxy = await CuttingProxy.before(WEFT_STRICT_URL);
  open.push(proxy);
  const weft = await connect(proxy.url);
  const lost = next(weft, "status", ({ state }) => state === "reconnecting");
  proxy.hold();
  assert.equal((await lost).reason.name, "Silent");
});

test("a gateway that is there, but quiet, is kept", async () => {
  const weft = await connect(WEFT_STRICT_URL);
  const states = [];
  weft.on("status", ({ state }) => states.push(state));
  await new Promise((resolve) => setTimeout(resolve, 8 * 1000 * weft.welcome.ping_s));
  assert.deepEqual(states, []);
});

/** Why a connection of this name is gone, once it is. */
async function whyGone(name) {
  const watching = await connect(WEFT_URL);
  let reason;
  await watching.subscribe("/_WEFT/event/disconnected", ({ data }) => {
    if (data.name === name) reason = data.reason;
  });
  return async () => {
    await until(() => reason, "the end of it");
    return reason;
  };
}

test("whoever closes is gone at once", async () => {
  const gone = await whyGone("leaving.1");
  await (await connect(WEFT_URL, { name: "leaving.1" })).close();
  assert.equal(await gone(), "left");
});

test("whoever closes while it is away is gone at once, too", async () => {
  const gone = await whyGone("leaving.2");
  const proxy = await CuttingProxy.before(WEFT_URL);
  open.push(proxy);
  const weft = await connect(proxy.url, { name: "leaving.2", backoffFirst: 60_000, backoffCap: 60_000 });
  const away = next(weft, "status", ({ state }) => state === "reconnecting");
  proxy.cut();
  await away;
  await weft.close();
  assert.equal(await gone(), "left");
});

test("where nothing is, there is no connection", async () => {
  const proxy = await CuttingProxy.before(null);
  open.push(proxy);
  assert.deepEqual(await refusal(connect(proxy.url)), ["Unreachable", 3001]);
});

test("who says so waits for the first connection", async () => {
  const proxy = await CuttingProxy.before(null);
  open.push(proxy);
  setTimeout(() => proxy.leadTo(WEFT_URL), 100);
  const weft = await connect(proxy.url, { wait: true });
  assert.equal(weft.status.state, "connected");
});

test("options that do not exist are refused", async () => {
  assert.deepEqual(await refusal(connect(WEFT_URL, { servise: "chat" })), ["BadOption", 1005]);
  assert.deepEqual(await refusal(connect(WEFT_URL, { transports: ["pigeon"] })), ["BadOption", 1005]);
  const weft = await connect(WEFT_URL);
  assert.throws(() => weft.on("nothing", () => {}), { name: "BadOption" });
});
