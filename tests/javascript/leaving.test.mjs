// A page that is left is gone at once, by one transport; test_node.py says where the gateways are.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";

// What a browser has and Node has not: events of the page.
const page = new EventTarget();
globalThis.addEventListener = page.addEventListener.bind(page);
globalThis.removeEventListener = page.removeEventListener.bind(page);

const { connect: connectAnyhow } = await import("../../src/weft/static/weft.js");
const { next, refusal, until } = await import("./awaiting.mjs");
const { CuttingProxy } = await import("./cutting_proxy.mjs");

const { WEFT_URL, WEFT_TRANSPORT: transport } = process.env;
const open = [];

async function connect(url, options) {
  const connection = await connectAnyhow(url, { service: "left", ...options });
  open.push(connection);
  return connection;
}

afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.close()));
});

const leave = () => page.dispatchEvent(Object.assign(new Event("pagehide"), { persisted: true }));
const comeBack = () => page.dispatchEvent(Object.assign(new Event("pageshow"), { persisted: true }));

/** Resolves with why a connection of this name is gone; the watcher is none that pages have. */
async function whyGone(watching, name) {
  let reason;
  await watching.subscribe("/_WEFT/event/disconnected", ({ data }) => {
    if (data.name === name) reason = data.reason;
  });
  return async () => {
    await until(() => reason, "the end of it");
    return reason;
  };
}

/** A connection of another process, as it were: no event of this page reaches it. */
async function elsewhere() {
  const { addEventListener } = globalThis;
  globalThis.addEventListener = undefined;
  try {
    return await connect(WEFT_URL);
  } finally {
    globalThis.addEventListener = addEventListener;
  }
}

test("a page that is left is asked nothing any more", async () => {
  const watching = await elsewhere();
  const gone = await whyGone(watching, "page.1");
  const weft = await connect(WEFT_URL, { transports: [transport], name: "page.1" });
  await weft.subscribe("/page/asked", (message) => void message.respond({}).catch(() => {}));
  await watching.request("/page/asked");
  leave();
  assert.equal(await gone(), "left");
  assert.deepEqual(await refusal(watching.request("/page/asked")), ["NotKnown", 4001]);
});

test("a page that is left while it is away is gone, too", async () => {
  const gone = await whyGone(await elsewhere(), "page.2");
  const proxy = await CuttingProxy.before(WEFT_URL);
  open.push(proxy);
  const slow = { transports: [transport], name: "page.2", backoffFirst: 60_000, backoffCap: 60_000 };
  const weft = await connect(proxy.url, slow);
  const away = next(weft, "status", ({ state }) => state === "reconnecting");
  proxy.leadTo(null);
  proxy.cut();
  await away;
  proxy.leadTo(WEFT_URL);
  leave();
  assert.equal(await gone(), "left");
});

test("a page that is shown again begins a new conversation, and says that there is a gap", async () => {
  const weft = await connect(WEFT_URL, { transports: [transport] });
  await weft.subscribe("/page/again", () => {});
  const away = next(weft, "status", ({ state }) => state === "reconnecting");
  leave();
  assert.equal((await away).reason.message, "the page was left");
  const back = next(weft, "status", ({ state }) => state === "connected");
  const gap = next(weft, "gap");
  comeBack();
  assert.equal((await back).isResumed, false);
  assert.equal((await gap).reason, "reconnected");
});
