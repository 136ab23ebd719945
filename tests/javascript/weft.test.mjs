// What pages say to each other, by one transport; test_node.py starts gateways and says where they are.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";

import { connect as connectAnyhow } from "../../src/weft/static/weft.js";
import { next, refusal, until } from "./awaiting.mjs";

const { WEFT_URL, WEFT_TRANSPORT: transport } = process.env;
const open = [];

async function connect(url, options) {
  const connection = await connectAnyhow(url, { service: "tested", ...options });
  open.push(connection);
  return connection;
}

/** A handler that keeps what it gets. */
function keeping(kept = []) {
  return Object.assign((message) => kept.push(message.data), { kept });
}

afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.close()));
});

const here = (options) => connect(WEFT_URL, { transports: [transport], ...options });

test("a message reaches its subscriber, known by the id that its publisher is told", async () => {
  const weft = await here({ name: "me.1" });
  assert.equal(weft.status.transport, transport);
  assert.equal(weft.welcome.name, "me.1");
  const got = [];
  await weft.subscribe("/rooms/lobby", (message) => got.push(message));
  const id = await weft.publish("/rooms/lobby", { text: "hello" });
  await until(() => got.length === 1, "the message");
  assert.deepEqual([got[0].id, got[0].path, got[0].data], [id, "/rooms/lobby", { text: "hello" }]);
});

test("messages arrive in the order they were published", async () => {
  const [from, to] = [await here(), await here()];
  const keep = keeping();
  await to.subscribe("/counted", keep);
  const numbers = Array.from({ length: 500 }, (_, number) => number);
  await Promise.all(numbers.map((number) => from.publish("/counted", { number })));
  await until(() => keep.kept.length === numbers.length, "all messages");
  assert.deepEqual(keep.kept.map(({ number }) => number), numbers);
});

test("any JSON comes through as it is", async () => {
  const weft = await here();
  const keep = keeping();
  await weft.subscribe("/any", keep);
  const said = ["text", 7, 1.5, true, null, [1, "a", null], {}, { a: { b: [1] } }, "größe 東京 \u2028 \n", ""];
  for (const data of said) await weft.publish("/any", data);
  await until(() => keep.kept.length === said.length, "all of it");
  assert.deepEqual(keep.kept, said);
});

test("subpaths are asked for by name", async () => {
  const weft = await here();
  const [narrow, wide] = [keeping(), keeping()];
  await weft.subscribe("/rooms", narrow);
  await weft.subscribe("/rooms", wide, { subpaths: true });
  await weft.publish("/rooms", 1);
  await weft.publish("/rooms/a/b", 2);
  await until(() => wide.kept.length === 2, "both");
  assert.deepEqual([narrow.kept, wide.kept], [[1], [1, 2]]);
});

test("a subscription that is closed takes nothing from another one", async () => {
  const weft = await here();
  const [narrow, wide] = [keeping(), keeping()];
  await weft.subscribe("/rooms", narrow);
  const closed = await weft.subscribe("/rooms", wide, { subpaths: true });
  await closed.close();
  await weft.publish("/rooms", 1);
  await until(() => narrow.kept.length === 1, "the message");
  assert.deepEqual([wide.kept, closed.isOpen], [[], false]);
});

test("not_back keeps a message from its sender", async () => {
  const [me, other] = [await here(), await here()];
  const [mine, others] = [keeping(), keeping()];
  await me.subscribe("/echo", mine);
  await other.subscribe("/echo", others);
  await me.publish("/echo", 1, { notBack: true });
  await me.publish("/echo", 2);
  await until(() => mine.kept.length && others.kept.length === 2, "the messages");
  assert.deepEqual([mine.kept, others.kept], [[2], [1, 2]]);
});

test("a request is answered", async () => {
  const [asking, serving] = [await here(), await here()];
  const answering = (message) => message.respond({ of: message.data.symbol, is: message.isRequest });
  await serving.subscribe("/quotes/get", answering);
  const answer = await asking.request("/quotes/get", { symbol: "VOD" }, { timeout: 10_000 });
  assert.deepEqual(answer.data, { of: "VOD", is: true });
});

test("a masked request is answered by one who does not see whom", async () => {
  const [asking, serving] = [await here(), await here()];
  const replies = [];
  await serving.subscribe("/masked", (message) => (replies.push(message.reply), message.respond(1)));
  assert.equal((await asking.request("/masked", {}, { masked: true })).data, 1);
  assert.equal((await asking.request("/masked")).data, 1);
  assert.deepEqual(
    replies.map((reply) => reply.startsWith(asking.welcome.inbox)),
    [false, true],
  );
});

test("a request that nobody serves is refused at once", async () => {
  const weft = await here();
  assert.deepEqual(await refusal(weft.request("/nobody")), ["NotKnown", 4001]);
});

test("a request that nobody answers is given up", async () => {
  const weft = await here();
  await weft.subscribe("/silent", () => {});
  assert.deepEqual(await refusal(weft.request("/silent", {}, { timeout: 20 })), ["TimedOut", 3002]);
});

test("a responder that leaves is told of", async () => {
  const [asking, serving] = [await here(), await here()];
  await serving.subscribe("/leaving", () => serving.close());
  assert.deepEqual(await refusal(asking.request("/leaving")), ["ResponderGone", 3003]);
});

test("what is refused says why, and the connection goes on", async () => {
  const weft = await here();
  assert.deepEqual(await refusal(weft.publish("no/path")), ["BadSubject", 1001]);
  assert.deepEqual(await refusal(weft.publish("/_WEFT/secret")), ["Reserved", 4002]);
  assert.deepEqual(await refusal(weft.subscribe("/a//b", () => {})), ["BadSubject", 1001]);
  assert.deepEqual(await refusal(weft.publish("/a", 10n)), ["BadField", 1002]);
  assert.deepEqual(await refusal(weft.publish("/a", () => {})), ["BadField", 1002]);
  assert.ok(await weft.publish("/a", 1));
});

test("several that are refused at once each say why", async () => {
  const weft = await here();
  const paths = ["no", "/a", "neither", "/_WEFT/a", "/b"];
  const outcomes = await Promise.allSettled(paths.map((path) => weft.publish(path, 1)));
  assert.deepEqual(
    outcomes.map(({ value, reason }) => (value ? "taken" : reason.name)),
    ["BadSubject", "taken", "BadSubject", "Reserved", "taken"],
  );
  assert.equal(weft.status.state, "connected");
});

test("what is no subscription is refused", async () => {
  const weft = await here();
  assert.deepEqual(await refusal(weft.subscribe(7, () => {})), ["UsageError", 1000]);
  assert.deepEqual(await refusal(weft.subscribe("/a")), ["UsageError", 1000]);
});

test("a message that is too big is refused, and the connection goes on", async () => {
  const weft = await here();
  const { body_limit: limit } = weft.welcome;
  for (const data of ["x".repeat(limit + 1), Array(limit / 4).fill(1), "東".repeat(limit)]) {
    assert.deepEqual(await refusal(weft.publish("/big", data)), ["BadField", 1002]);
  }
  assert.ok(await weft.publish("/a", "x".repeat(limit - 1000)));
  assert.equal(weft.status.state, "connected");
});

test("a handler that fails is reported, and gets the next message", async () => {
  const weft = await here();
  const kept = [];
  const reported = next(weft, "error");
  await weft.subscribe("/a", async ({ data }) => {
    if (data === 1) throw new Error("one is too many");
    kept.push(data);
  });
  await weft.publish("/a", 1);
  await weft.publish("/a", 2);
  assert.equal((await reported).message, "one is too many");
  await until(() => kept.length === 1, "the second");
});

test("a closed connection says so", async () => {
  const weft = await here();
  const subscription = await weft.subscribe("/a", () => {});
  await weft.close();
  await weft.close();
  assert.equal(weft.status.state, "closed");
  assert.equal(subscription.isOpen, false);
  for (const refused of [() => weft.publish("/a"), () => weft.request("/a"), () => weft.subscribe("/a", () => {})]) {
    assert.deepEqual(await refusal(refused()), ["NotOpen", 1006]);
  }
});

test("what was said before the end is still taken", async () => {
  const [weft, other] = [await here(), await here()];
  const keep = keeping();
  await other.subscribe("/last", keep);
  const taken = weft.publish("/last", "word");
  await weft.close();
  assert.ok(await taken);
  await until(() => keep.kept.length === 1, "the last word");
});
