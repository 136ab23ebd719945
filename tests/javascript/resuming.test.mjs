// What a lost connection costs, by one transport; test_node.py starts gateways and says where they are.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";

import { connect as connectAnyhow } from "../../src/weft/static/weft.js";
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

test("after many cuts nothing is lost and nothing repeated", async () => {
  const proxy = await proxyBefore(WEFT_URL);
  const quick = { transports: [transport], backoffFirst: 5, backoffCap: 20 };
  const [from, to] = [await here(), await connect(proxy.url, quick)];
  const keep = keeping();
  const gaps = [];
  let losses = 0;
  to.on("gap", (gap) => gaps.push(gap.reason));
  to.on("status", ({ state }) => (losses += state === "reconnecting"));
  await to.subscribe("/numbers", keep);
  for (let number = 0; number < 2000; number += 20) {
    await Promise.all(Array.from({ length: 20 }, (_, at) => from.publish("/numbers", number + at)));
    // In the middle of whatever it does then.
    if (number % 40 === 20) proxy.cut();
  }
  await until(() => keep.kept.at(-1) === 1999, "the last");
  assert.deepEqual(keep.kept, Array.from({ length: 2000 }, (_, number) => number));
  assert.deepEqual(gaps, []);
  assert.ok(losses > 10, `lost ${losses} times`);
});

// By requests of their own nobody knows: such a request may still be on its way.
const isOneWay = { skip: transport !== "websocket" };

test("what was said before a cut and did arrive is answered after it", isOneWay, async () => {
  const proxy = await proxyBefore(WEFT_URL);
  const weft = await connect(proxy.url, { transports: [transport] });
  const keep = keeping();
  await (await here()).subscribe("/arrived", keep);
  proxy.holdDown();
  const said = [1, 2, 3].map((data) => weft.publish("/arrived", data, { resend: data > 1 }));
  await until(() => keep.kept.length === 3, "what was said");
  proxy.cut();
  assert.equal(new Set(await Promise.all(said)).size, 3);
  assert.deepEqual(keep.kept, [1, 2, 3]);
});

test("a request is answered after a cut", isOneWay, async () => {
  const proxy = await proxyBefore(WEFT_URL);
  const [weft, serving] = [await connect(proxy.url, { transports: [transport] }), await here()];
  let asked;
  await serving.subscribe("/slow/answer", (message) => (asked = message));
  const answer = weft.request("/slow/answer", 1);
  await until(() => asked, "the request");
  proxy.cut();
  await asked.respond(2);
  assert.equal((await answer).data, 2);
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
  const weft = await connect(proxy.url, { transports: [transport], name: "moved.1" });
  const keep = keeping();
  await weft.subscribe("/moved", keep);
  const gap = next(weft, "gap");
  proxy.leadTo(WEFT_OTHER_URL);
  proxy.cut();
  assert.equal((await gap).reason, "reconnected");
  assert.deepEqual([weft.welcome.gateway, weft.welcome.name], ["other", "moved.1"]);
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
