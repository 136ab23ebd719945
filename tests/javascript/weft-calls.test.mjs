import assert from "node:assert/strict";
import { test } from "node:test";

import { Calls } from "../../src/weft/static/weft-calls.js";
import { failure } from "../../src/weft/static/weft-errors.js";
import { refusal } from "./awaiting.mjs";

const LOST = failure("ConnectionLost", "cut");

test("a call is said with its data as it was when it was made", () => {
  const calls = new Calls(10_000);
  const data = { text: "hello" };
  const call = calls.open({ path: "/a" }, { data });
  data.text = "changed";
  assert.deepEqual(JSON.parse(calls.say(call, "/inbox")), { path: "/a", ack: call.ack, data: { text: "hello" } });
});

test("a request is answered below the inbox of its conversation", async () => {
  const calls = new Calls(10_000);
  const call = calls.open({ path: "/a", request: true }, { data: {} });
  const { reply } = JSON.parse(calls.say(call, "/_INBOX/1"));
  assert.match(reply, /^\/_INBOX\/1\/[0-9a-f]{16}$/);
  calls.confirm(call.ack, "7.1");
  assert.equal(calls.answer("/_INBOX/1/other", "no"), false);
  assert.equal(calls.answer(`/_INBOX/1/${call.ack}`, "no"), false);
  assert.equal(calls.answer(reply, "answer"), true);
  assert.equal(await call.answer, "answer");
});

test("no two requests are answered at the same place", () => {
  const calls = new Calls(1_000_000);
  const replies = Array.from({ length: 1000 }, () => {
    const call = calls.open({ path: "/a", request: true });
    return JSON.parse(calls.say(call, "/inbox")).reply;
  });
  assert.equal(new Set(replies).size, replies.length);
});

test("what the gateway is asked it answers itself", async () => {
  const calls = new Calls(10_000);
  const call = calls.open({ path: "/_WEFT/ask/status", request: true });
  const { reply } = JSON.parse(calls.say(call, "/inbox"));
  calls.answer(reply, { data: "forged", isFromGateway: false });
  calls.answer(reply, { data: "genuine", isFromGateway: true });
  assert.equal((await call.answer).data, "genuine");
});

test("at the end of a conversation what was sent fails, and what was not sent waits", async () => {
  const calls = new Calls(10_000);
  const [sent, again, unsent, bound] = [{}, { again: true }, {}, { bound: true }].map((options) =>
    calls.open({ path: "/a" }, options),
  );
  [sent, again].forEach((call) => calls.say(call, "/inbox"));
  calls.end(LOST);
  assert.deepEqual(await refusal(sent.answer), ["ConnectionLost", 3000]);
  assert.deepEqual(await refusal(bound.answer), ["ConnectionLost", 3000]);
  assert.deepEqual(calls.unsent, [again, unsent]);
});

test("what is given back is said again, what is doubted is not", async () => {
  const calls = new Calls(10_000);
  const [returned, doubted] = [calls.open({ path: "/a" }), calls.open({ path: "/b" })];
  [returned, doubted].forEach((call) => calls.say(call, "/inbox"));
  calls.giveBack(returned.ack);
  calls.doubt(doubted.ack, LOST);
  assert.deepEqual(calls.unsent, [returned]);
  assert.deepEqual(await refusal(doubted.answer), ["ConnectionLost", 3000]);
});

test("a request that was taken is in doubt only when its conversation ends", async () => {
  const calls = new Calls(10_000);
  const call = calls.open({ path: "/a", request: true });
  calls.say(call, "/inbox");
  calls.confirm(call.ack, "7.1");
  calls.doubt(call.ack, failure("TimedOut", "not this"));
  calls.end(LOST);
  assert.deepEqual(await refusal(call.answer), ["ConnectionLost", 3000]);
});

test("the bound holds for what waits, and frees what was answered", async () => {
  const calls = new Calls(500);
  const call = calls.open({ path: "/a" }, { data: "x".repeat(100) });
  assert.throws(() => calls.open({ path: "/a" }, { data: "xxx" }), { name: "Overloaded" });
  // Interests are said in every conversation: a full buffer must not keep them out.
  calls.open({ interest: "/a" });
  calls.say(call, "/inbox");
  calls.confirm(call.ack, "7.1");
  assert.equal(await call.answer, "7.1");
  calls.open({ path: "/a" }, { data: "xxx" });
});

test("the bound holds whatever a path is", () => {
  const calls = new Calls(1000);
  const open = () => [7, null, {}].forEach((path) => calls.open({ path }));
  open();
  assert.throws(open, { name: "Overloaded" });
});

test("answers to nothing are ignored", () => {
  const calls = new Calls(10_000);
  calls.confirm(99, "7.1");
  calls.doubt(99, LOST);
  calls.giveBack(99);
  assert.equal(calls.refuse(99, "/reply", LOST), false);
  assert.equal(calls.refuse(undefined, undefined, LOST), false);
});
