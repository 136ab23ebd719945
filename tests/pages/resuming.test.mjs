// What a lost connection costs, by one transport; test_node.py starts gateways and says where they are.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";

import { connect as connectAnyhow } from "../../src/weft/pages/weft.js";
import { next, refusal, until } from "./awaiting.mjs";
import { CuttingProxy } from "./cutting_proxy.mjs";

const { WEFT_URL, WEFT_OTHER_URL, WEFT_TRANSPORT: transport } = process.env;
const open = [];

async function connect(url, options) {
  const connection = await connectAnyhow(url, { service: "tested", ...options });
  open.push(connection);
  return connection;
}

async function proxyBefore(url) {
  const proxy = await CuttingProxy.before(url);
  open.push(proxy);
  return proxy;
}

/** A handler that keeps what it gets. */
function keeping(kept = []) {
  return Object.assign((message) => kept.push(message.data), { kept });
}

afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.close()));
});

const here = (options) => connect(WEFT_URL, { transports: [transport], ...options });

test("after a cut it goes on, and says what it cannot vouch for", async () => {
  const proxy = await proxyBefore(WEFT_URL);
  const [from, to] = [await here(), await connect(proxy.url, { transports: [transport] })];
  const keep = keeping();
  const gaps = [];
  to.on("gap", (gap) => gaps.push(gap.reason));
  await to.subscribe("/numbers", keep);
  for (let number = 0; number < 60; number += 1) {
    await from.publish("/numbers", { number });
    if (number % 20 === 10) {
      const back = next(to, "status", ({ state }) => state === "connected");
      proxy.cut();
      if (transport === "websocket") await back.then(() => to.publish("/settled"));
    }
  }
  await until(() => keep.kept.at(-1)?.number === 59, "the last");
  const numbers = keep.kept.map(({ number }) => number);
  assert.deepEqual(numbers, [...new Set(numbers)].sort((a, b) => a - b), "none twice, all in order");
  if (transport === "websocket") {
    assert.deepEqual(gaps, ["reconnected", "reconnected", "reconnected"]);
  } else {
    assert.deepEqual([numbers.length, gaps], [60, []]);
  }
});

test("what is published while it is away waits", async () => {
  const proxy = await proxyBefore(WEFT_URL);
  const weft = await connect(proxy.url, { transports: [transport] });
  const keep = keeping();
  await (await here()).subscribe("/later", keep);
  const away = next(weft, "status", ({ state }) => state === "reconnecting");
  proxy.leadTo(null);
  proxy.cut();
  const { reason, attempt } = await away;
  assert.deepEqual([reason.isPassing, attempt], [true, 1]);
  const taken = [1, 2, 3].map((data) => weft.publish("/later", data));
  proxy.leadTo(WEFT_URL);
  await Promise.all(taken);
  await until(() => keep.kept.length === 3, "what waited");
  assert.deepEqual(keep.kept, [1, 2, 3]);
});

test("what waits is bounded", async () => {
  const proxy = await proxyBefore(WEFT_URL);
  const weft = await connect(proxy.url, { transports: [transport], bufferLimit: 500 });
  const away = next(weft, "status", ({ state }) => state === "reconnecting");
  proxy.leadTo(null);
  proxy.cut();
  await away;
  const fits = weft.publish("/a", "x".repeat(80));
  assert.deepEqual(await refusal(weft.publish("/a", "x".repeat(80))), ["Overloaded", 3007]);
  await weft.close();
  assert.deepEqual(await refusal(fits), ["NotOpen", 1006]);
});

test("what was sent and not answered fails, unless it may be sent again", async () => {
  const proxy = await proxyBefore(WEFT_URL);
  const weft = await connect(proxy.url, { transports: [transport] });
  const keep = keeping();
  await (await here()).subscribe("/doubtful", keep);
  proxy.hold();
  const [once, again] = [weft.publish("/doubtful", 1), weft.publish("/doubtful", 2, { resend: true })];
  const lost = refusal(once);
  setTimeout(() => proxy.cut(), 50);
  assert.deepEqual(await lost, ["ConnectionLost", 3000]);
  assert.ok(await again);
  await until(() => keep.kept.includes(2), "what was sent again");
  assert.deepEqual(keep.kept, [2]);
});

test("a request that was lost on its way fails before its time", async () => {
  const proxy = await proxyBefore(WEFT_URL);
  const weft = await connect(proxy.url, { transports: [transport] });
  proxy.hold();
  const lost = refusal(weft.request("/lost"));
  setTimeout(() => proxy.cut(), 50);
  assert.deepEqual(await lost, ["ConnectionLost", 3000]);
});

test("another gateway makes a new conversation: a gap, and the subscriptions again", async () => {
  const proxy = await proxyBefore(WEFT_URL);
  const weft = await connect(proxy.url, { transports: [transport] });
  const keep = keeping();
  await weft.subscribe("/moved", keep);
  const gap = next(weft, "gap");
  proxy.leadTo(WEFT_OTHER_URL);
  proxy.cut();
  assert.equal((await gap).reason, "reconnected");
  assert.equal(weft.welcome.gateway, "other");
  await weft.publish("/moved", 1);
  await until(() => keep.kept.length === 1, "the message");
});

test("an answer to a request of a lost conversation is refused", async () => {
  const proxy = await proxyBefore(WEFT_URL);
  const [asking, serving] = [await here(), await connect(proxy.url, { transports: [transport] })];
  let asked;
  await serving.subscribe("/slow", (message) => (asked = message));
  const gone = refusal(asking.request("/slow", {}, { timeout: 500 }));
  await until(() => asked, "the request");
  const back = next(serving, "gap");
  proxy.leadTo(WEFT_OTHER_URL);
  proxy.cut();
  await back;
  assert.deepEqual(await refusal(asked.respond(1)), ["ConnectionLost", 3000]);
  await gone;
});
