// What a page that moves to another gateway is given of what it received before.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";

import { Received } from "../../src/weft/static/weft-received.js";
import { connect } from "../../src/weft/static/weft.js";
import { next, until } from "./awaiting.mjs";
import { CuttingProxy } from "./cutting_proxy.mjs";
import { OddGateway } from "./odd_gateway.mjs";

const open = [];

afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.close()));
});

/** A page at the first of two gateways, that both tell what a test wants. */
async function between() {
  const [first, second] = [await OddGateway.open("first"), await OddGateway.open("second")];
  const proxy = await CuttingProxy.before(first.url);
  const weft = await connect(proxy.url, { transports: ["sse"], backoffFirst: 10 });
  open.push(weft, proxy, first, second);
  const move = async () => {
    const back = next(weft, "status", ({ state }) => state === "connected");
    proxy.leadTo(second.url);
    proxy.cut();
    await back;
  };
  return { first, second, weft, move };
}

function tell(gateway, path, ...ids) {
  for (const id of ids) gateway.tell({ id, path, data: id });
}

test("what came before is not heard again from another gateway", async () => {
  const { first, second, weft, move } = await between();
  const [heard, gaps] = [[], []];
  weft.on("gap", (gap) => gaps.push(gap));
  await weft.subscribe("/news", ({ data }) => heard.push(data));
  tell(first, "/news", "7.1", "7.2", "8.5", "7.4");
  await until(() => heard.length === 4, "all of the first");
  await move();
  tell(second, "/news", "7.2", "7.4", "8.4", "7.5", "9.1", "8.6");
  await until(() => heard.includes("8.6"), "the last of the second");
  assert.deepEqual(heard, ["7.1", "7.2", "8.5", "7.4", "7.5", "9.1", "8.6"]);
  assert.deepEqual(gaps, [{ reason: "reconnected", count: null }]);
});

test("what only one is given is heard whenever it comes", async () => {
  const { first, second, weft, move } = await between();
  const heard = [];
  await weft.subscribe("/news", ({ data }) => heard.push(data));
  await weft.subscribe("/jobs", ({ data }) => heard.push(data), { group: "workers" });
  tell(first, "/news", "7.1", "7.9");
  await until(() => heard.length === 2, "all of the first");
  await move();
  tell(second, "/jobs", "7.3");
  second.tell({ id: "7.4", path: "/news", data: "7.4", request: true, reply: "/_INBOX/9/1" });
  tell(second, "/news", "7.9", "7.10");
  await until(() => heard.includes("7.10"), "the last of the second");
  assert.deepEqual(heard, ["7.1", "7.9", "7.3", "7.4", "7.10"]);
});

test("in one conversation nothing is taken for repeated", () => {
  const received = new Received();
  for (const id of ["7.2", "7.1", "7.2", "7.0", undefined, "t.1"]) assert.equal(received.isRepeated(id), false);
  received.resume();
  for (const id of ["7.0", undefined, "t.1", "7.9223372036854775809"]) assert.equal(received.isRepeated(id), false);
  assert.equal(received.isRepeated("7.2"), true);
});

test("of many gateways those heard of last are remembered", () => {
  const received = new Received();
  for (let origin = 1; origin <= 4096; origin += 1) received.isRepeated(`${origin}.1`);
  received.isRepeated("1.2");
  received.isRepeated("5000.1");
  received.resume();
  assert.deepEqual(["1.2", "2.1", "3.1", "5000.1"].map((id) => received.isRepeated(id)), [true, false, true, true]);
});
