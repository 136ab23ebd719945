// A page that was asked once knows an inbox, and floods it before the requests that it would answer.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";

import { connect as connectAnyhow } from "../../src/weft/static/weft.js";

const { WEFT_URL } = process.env;
const ROUNDS = 20;
const GUESSES = 60;
const open = [];

async function connect() {
  const connection = await connectAnyhow(WEFT_URL, { service: "tested", transports: ["websocket"] });
  open.push(connection);
  return connection;
}

afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.close()));
});

/** A page that asks, its inbox, and a page that learned it by being asked once. */
async function asked() {
  const [victim, forger] = [await connect(), await connect()];
  const learned = [];
  await forger.subscribe("/evil", (message) => {
    learned.push(message.reply);
    message.respond("evil's own");
  });
  assert.equal((await victim.request("/evil")).data, "evil's own");
  return { victim, forger, inbox: learned[0].slice(0, learned[0].lastIndexOf("/")) };
}

/** A message to every name that a counter would give; resolves when the gateway has taken them. */
function flood(forger, inbox, data) {
  const names = Array.from({ length: GUESSES }, (_, number) => `${number}`);
  return Promise.allSettled(names.map((name) => forger.publish(`${inbox}/${name}`, data)));
}

test("no answer that was sent before a request counts", async () => {
  const { victim, forger, inbox } = await asked();
  const good = await connect();
  await good.subscribe("/good", (message) => message.respond("genuine"));
  for (let round = 0; round < ROUNDS; round++) {
    // Nothing is read between the two: what is forged comes once it was asked.
    const flooding = flood(forger, inbox, "forged");
    const answer = await victim.request("/good");
    await flooding;
    assert.equal(answer.data, "genuine");
  }
});

test("what the gateway is asked nobody else answers", async () => {
  const { victim, forger, inbox } = await asked();
  for (let round = 0; round < ROUNDS; round++) {
    const flooding = flood(forger, inbox, { service: "forged" });
    const answer = await victim.request("/_WEFT/ask/status");
    await flooding;
    assert.equal(answer.data.service, "tested");
    assert.equal(answer.isFromGateway, true);
  }
});
