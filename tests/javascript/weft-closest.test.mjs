// Which gateway is taken by whoever looks for the closest, with masters that say what a test wants.

import assert from "node:assert/strict";
import http from "node:http";
import { afterEach, test } from "node:test";

import { connect as connectAnyhow } from "../../src/weft/static/weft.js";
import { next, refusal, until } from "./awaiting.mjs";
import { CuttingProxy } from "./cutting_proxy.mjs";

const { WEFT_URL, WEFT_OTHER_URL, WEFT_DRAINED_URL } = process.env;
const FAR = 80;
const open = [];

async function connect(url, options) {
  const connection = await connectAnyhow(url, options);
  open.push(connection);
  return connection;
}

async function before(url, delay) {
  const proxy = await CuttingProxy.before(url, delay);
  open.push(proxy);
  return proxy;
}

/** A gateway that names others, by their URLs or as they are; `asked` is what it was asked. */
async function master(...named) {
  const asked = [];
  const candidates = named.map((each) => ({ name: "n", address: each?.replace?.(/^http:\/\//, "") ?? each }));
  const server = http.createServer((request, response) => {
    asked.push([request.url, request.headers.authorization]);
    response.end(JSON.stringify({ candidates }));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  open.push({ close: () => (server.closeAllConnections(), new Promise((resolve) => server.close(resolve))) });
  return { url: `http://127.0.0.1:${server.address().port}`, asked };
}

afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.close()));
});

test("the closest by measure is taken, whatever was guessed", async () => {
  const [far, near] = [await before(WEFT_URL, FAR), await before(WEFT_OTHER_URL)];
  const { url, asked } = await master(far.url, near.url);
  const weft = await connect(WEFT_URL, { closest: url, region: "eu", key: "k" });
  assert.equal(weft.welcome.gateway, "other");
  assert.equal(weft.status.url, near.url);
  assert.match(weft.status.why, /^the closest of 2 that answered, in .* named by /);
  assert.deepEqual(asked, [["/closest?service=default&limit=3&region=eu", "Bearer k"]]);
});

test("a real gateway names itself", async () => {
  const weft = await connect(WEFT_OTHER_URL, { closest: true });
  assert.equal(weft.status.url, WEFT_OTHER_URL);
  assert.match(weft.status.why, /^the closest of 1 /);
});

test("no more are measured than a few", async () => {
  const proxies = await Promise.all([1, 2, 3, 4].map(() => before(WEFT_URL)));
  const { url } = await master(...proxies.map((each) => each.url));
  await connect(WEFT_OTHER_URL, { closest: url });
  assert.equal(proxies[3].accepted, 0);
});

test("with the master down the given one is used", async () => {
  const nobody = await before(null);
  const weft = await connect(WEFT_URL, { closest: nobody.url });
  assert.equal(weft.welcome.gateway, "first");
  assert.match(weft.status.why, /^given, as .* names no gateways: /);
});

test("what is nonsense or cannot be used is passed over", async () => {
  const nobody = await before(null);
  const { url } = await master("http://[", nobody.url, "ftp://a:1", "0.0.0.0:0");
  const weft = await connect(WEFT_URL, { closest: url });
  assert.equal(weft.welcome.gateway, "first");
  assert.match(weft.status.why, /^given, as none of /);
  const { url: odd } = await master(7, null, "user@a:1");
  assert.equal((await connect(WEFT_URL, { closest: odd })).welcome.gateway, "first");
});

test("whoever does not know where it is is where it was asked", async () => {
  const { url } = await master("");
  const weft = await connect(WEFT_URL, { closest: url, transports: ["poll"], connectTimeout: 300 });
  // It is measured, and taken first, but is no gateway: then the given one is.
  assert.deepEqual([weft.welcome.gateway, weft.status.why], ["first", "given"]);
});

test("who speaks TLS neither asks nor goes without", async () => {
  const secure = "https://127.0.0.1:1";
  assert.deepEqual(await refusal(connect(secure, { closest: WEFT_URL })), ["BadOption", 1005]);
  assert.deepEqual(await refusal(connect(WEFT_URL, { closest: true, region: "a b" })), ["BadOption", 1005]);
});

test("if the best dies the next is taken, in a new conversation", async () => {
  const [near, far] = [await before(WEFT_OTHER_URL), await before(WEFT_URL, FAR)];
  const { url } = await master(far.url, near.url);
  const weft = await connect(WEFT_DRAINED_URL, { closest: url });
  assert.equal(weft.welcome.gateway, "other");
  const back = next(weft, "status", ({ state }) => state === "connected");
  near.leadTo(null);
  near.cut();
  const status = await back;
  assert.deepEqual([weft.welcome.gateway, status.isResumed, status.url], ["first", false, far.url]);
});

test("a connection that is cut goes on where it was", async () => {
  const near = await before(WEFT_URL);
  const { url } = await master(near.url);
  const weft = await connect(WEFT_OTHER_URL, { closest: url });
  const back = next(weft, "status", ({ state }) => state === "connected");
  near.cut();
  assert.equal((await back).isResumed, true);
});

test("a gateway that drains sends those elsewhere who look for the closest", async () => {
  const nobody = await before(null);
  let named = 0;
  while (named < 2) named = (await (await fetch(`${WEFT_DRAINED_URL}/closest`)).json()).candidates.length;
  const weft = await connect(WEFT_DRAINED_URL, { closest: nobody.url });
  assert.equal(weft.welcome.gateway, "drained");
  const back = next(weft, "status", ({ state }) => state === "connected");
  const control = await connect(WEFT_URL, { service: "control" });
  await control.publish("/drain");
  const status = await back;
  assert.deepEqual([weft.welcome.gateway, status.url], ["first", WEFT_URL]);
  assert.match(status.why, /advised by /);
  await until(() => weft.status.state === "connected", "the connection");
});
