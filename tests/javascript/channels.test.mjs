// Channels by real gateways: what is heard in them, by whom, and what becomes of them after a loss.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";

import { connect as connectAnyhow } from "../../src/weft/static/weft.js";
import { next, refusal, until } from "./awaiting.mjs";
import { CuttingProxy } from "./cutting_proxy.mjs";

const { WEFT_URL, WEFT_OTHER_URL } = process.env;
const transports = [process.env.WEFT_TRANSPORT || "websocket"];
const password = "correct horse";
const open = [];
let rooms = 0;

async function connect(url = WEFT_URL, options = {}) {
  const connection = await connectAnyhow(url, { transports, ...options });
  open.push(connection);
  return connection;
}

/** A name that no other test has. */
const fresh = () => `room.${transports[0]}.${(rooms += 1)}`;

/** What a subscription heard, to be waited for. */
function hearing() {
  const heard = [];
  const handler = (message) => heard.push(message);
  return { heard, handler, came: (count) => until(() => heard.length >= count, `${count} messages`) };
}

afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.close()));
});

test("members hear each other, and nobody else does", async () => {
  const [alice, bob, plain] = await Promise.all([connect(), connect(), connect()]);
  const [inside, outside] = [hearing(), hearing()];
  await plain.subscribe("/>", outside.handler);
  const name = fresh();
  const room = await alice.openChannel(name, { password });
  const table = await bob.joinChannel(name, { password });
  assert.deepEqual([table.id, table.name, table.isProtected, table.isOpen], [room.id, name, true, true]);
  await table.subscribe("/moves/*", inside.handler);
  await room.publish("/moves/white", { move: "e4" });
  await inside.came(1);
  assert.deepEqual([table.pathOf(inside.heard[0]), inside.heard[0].data], ["/moves/white", { move: "e4" }]);
  await alice.publish("/end");
  await outside.came(1);
  assert.equal(outside.heard[0].path, "/end");
});

test("somebody in it is asked and answers", async () => {
  const [alice, bob] = await Promise.all([connect(), connect()]);
  const name = fresh();
  const room = await alice.openChannel(name);
  await room.subscribe("/clock", (message) => message.respond({ now: 1 }));
  const table = await bob.joinChannel(name);
  assert.deepEqual((await table.request("/clock")).data, { now: 1 });
});

test("a wrong password, none, and one too many are refused", async () => {
  const [alice, bob] = await Promise.all([connect(), connect()]);
  const [locked, unlocked] = [fresh(), fresh()];
  await alice.openChannel(locked, { password });
  await alice.openChannel(unlocked);
  const wrong = ["WrongPassword", 4014];
  assert.deepEqual(await refusal(bob.joinChannel(locked, { password: "battery" })), wrong);
  assert.deepEqual(await refusal(bob.joinChannel(locked)), wrong);
  assert.deepEqual(await refusal(bob.joinChannel(unlocked, { password })), wrong);
  assert.deepEqual(await refusal(bob.joinChannel(locked, { password: "" })), ["BadOption", 1005]);
  assert.deepEqual(await refusal(bob.openChannel(unlocked)), ["ChannelExists", 4013]);
  assert.deepEqual(await refusal(alice.joinChannel(unlocked)), ["UsageError", 1000]);
  // None of that keeps it from being joined.
  assert.ok((await bob.joinChannel(unlocked)).isOpen);
});

test("whoever leaves is in it no more", async () => {
  const [alice, bob] = await Promise.all([connect(), connect()]);
  const name = fresh();
  const room = await alice.openChannel(name);
  const table = await bob.joinChannel(name);
  const subscription = await table.subscribe("/>", () => {});
  await table.leave();
  assert.deepEqual([table.isOpen, table.error, subscription.isOpen], [false, null, false]);
  assert.deepEqual(await refusal(table.publish("/a")), ["NotOpen", 1006]);
  await table.leave();
  assert.ok(room.isOpen);
  assert.ok((await bob.joinChannel(name)).isOpen);
});

test("a channel that is closed is lost to the others", async () => {
  const [alice, bob] = await Promise.all([connect(), connect()]);
  const name = fresh();
  const room = await alice.openChannel(name);
  const table = await bob.joinChannel(name);
  const subscription = await table.subscribe("/>", () => {});
  const lost = new Promise((resolve) => (table.onlost = resolve));
  await room.close();
  assert.equal((await lost).name, "ChannelClosed");
  assert.deepEqual([table.isOpen, table.error.name, subscription.isOpen], [false, "ChannelClosed", false]);
  assert.deepEqual([room.isOpen, room.error], [false, null]);
  assert.deepEqual(await refusal(table.publish("/a")), ["ChannelClosed", 4016]);
});

test("without anybody to tell, a loss is an error of the connection", async () => {
  const [alice, bob] = await Promise.all([connect(), connect()]);
  const name = fresh();
  const room = await alice.openChannel(name);
  await bob.joinChannel(name);
  const told = next(bob, "error");
  await room.close();
  assert.equal((await told).name, "ChannelClosed");
});

for (const secret of [{}, { password }]) {
  const kind = secret.password ? "with" : "without";
  test(`a channel ${kind} a password is had again at another gateway, by whoever opened it`, async () => {
    const proxy = await CuttingProxy.before(WEFT_URL);
    open.push(proxy);
    const alice = await connect(proxy.url, { backoffFirst: 1 });
    const name = fresh();
    const room = await alice.openChannel(name, secret);
    const { heard, handler, came } = hearing();
    await room.subscribe("/a", handler);
    const back = next(alice, "status", ({ state, isResumed }) => state === "connected" && !isResumed);
    proxy.leadTo(WEFT_OTHER_URL);
    proxy.cut();
    await back;
    await room.publish("/a", { text: "again" }, { resend: true });
    await came(1);
    assert.deepEqual(heard[0].data, { text: "again" });
    assert.equal(alice.welcome.gateway, "other");
    const bob = await connect(WEFT_OTHER_URL);
    assert.equal((await bob.joinChannel(name, secret)).id, room.id);
  });
}

test("whoever only joined is told that it is gone", async () => {
  const proxy = await CuttingProxy.before(WEFT_URL);
  open.push(proxy);
  const [alice, bob] = [await connect(), await connect(proxy.url, { backoffFirst: 1 })];
  const name = fresh();
  await alice.openChannel(name);
  const table = await bob.joinChannel(name);
  const lost = new Promise((resolve) => (table.onlost = resolve));
  proxy.leadTo(WEFT_OTHER_URL);
  proxy.cut();
  assert.equal((await lost).name, "WrongPassword");
  assert.deepEqual(await refusal(table.publish("/a")), ["WrongPassword", 4014]);
});

test("a conversation that is taken up again is still in its channels", async () => {
  const proxy = await CuttingProxy.before(WEFT_URL);
  open.push(proxy);
  const [alice, bob] = [await connect(), await connect(proxy.url, { backoffFirst: 1 })];
  const name = fresh();
  const room = await alice.openChannel(name);
  const table = await bob.joinChannel(name);
  const { handler, came } = hearing();
  await table.subscribe("/>", handler);
  const back = next(bob, "status", ({ state }) => state === "connected");
  proxy.cut();
  assert.ok((await back).isResumed);
  await room.publish("/a");
  await came(1);
});
