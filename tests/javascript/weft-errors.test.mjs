import assert from "node:assert/strict";
import { test } from "node:test";

import { errorFromAnswer, errorFromClose, errorFromFooter, failure } from "../../src/weft/static/weft-errors.js";

test("an error has a name and a number", () => {
  const { name, number, message } = failure("NotKnown", "nobody serves it");
  assert.deepEqual([name, number, message], ["NotKnown", 4001, "nobody serves it"]);
});

for (const [code, name, number, isPassing] of [
  [1000, "ConnectionLost", 3000, true],
  [1001, "ConnectionLost", 3000, true],
  [1006, "ConnectionLost", 3000, true],
  [1012, "ConnectionLost", 3000, true],
  [4204, "Draining", 3004, true],
  [4206, "Silent", 3006, true],
  [4608, "ControlFlood", 2008, false],
  [4806, "BadKey", 4006, false],
  [4299, "ConnectionLost", 3099, true],
  // Nothing has these now; whether to come back is what they say in any case.
  [4005, "ConnectionLost", 3000, true],
  [4701, "Refused", 4000, false],
  [4999, "WeftError", 5099, false],
]) {
  test(`close code ${code} is ${name} and ${isPassing ? "to come back is of use" : "final"}`, () => {
    const error = errorFromClose(code, "");
    assert.deepEqual([error.name, error.number, error.isPassing], [name, number, isPassing]);
  });
}

test("an HTTP answer tells its error", async () => {
  const body = JSON.stringify({ error: { number: 4006, name: "BadKey", text: "no key" } });
  const error = await errorFromAnswer(new Response(body, { status: 401 }));
  assert.deepEqual([error.name, error.number, error.message], ["BadKey", 4006, "no key"]);
});

test("an answer by somebody else may pass", async () => {
  for (const body of ["<html>blocked</html>", '{"error": null}', "[]"]) {
    const error = await errorFromAnswer(new Response(body, { status: 403 }));
    assert.equal(error.name, "Unreachable");
    assert.match(error.message, /403/);
  }
});

test("a request that took too long may pass", async () => {
  const body = JSON.stringify({ error: { number: 2006, name: "TooSlow", text: "the request took too long" } });
  const error = await errorFromAnswer(new Response(body, { status: 408 }));
  assert.deepEqual([error.name, error.isPassing], ["Unreachable", true]);
});

test("a stream that was ended for a reason is told so, and whether to come back", () => {
  assert.deepEqual([errorFromFooter("BadKey").number, errorFromFooter("BadKey").isPassing], [4006, false]);
  assert.deepEqual([errorFromFooter("Silent").number, errorFromFooter("Silent").isPassing], [3006, true]);
  assert.deepEqual([errorFromFooter("replaced").name, errorFromFooter("replaced").isPassing], ["ConnectionLost", true]);
});
