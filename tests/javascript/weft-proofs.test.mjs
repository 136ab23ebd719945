// What a page makes of a password is what Python makes of it: src/weft/wire/password_proof.py.

import assert from "node:assert/strict";
import { createHash, createHmac } from "node:crypto";
import { inspect } from "node:util";
import { test } from "node:test";

import { Secret } from "../../src/weft/static/weft-proofs.js";

// Of secret_of("chat", b"games.chess", "cörrect ﬁsh").verifier; the ﬁ is one letter, and becomes two.
const STORED = "6c450ffeb17094ea37c24f4ed99822d677f2271cf1a1ef24c062db798c4d684b";
const SERVER = "ee5c67ce0962543e24b23479a88c47134257cabde15913ad57dde86a854f9087";
const bytesIn = ({ $blob }) => Buffer.from($blob, "base64");
const secret = await Secret.of("chat", "games.chess", "cörrect ﬁsh");

test("a gateway is given what Python gives it", async () => {
  const { stored, server } = await secret.verifier();
  assert.deepEqual([bytesIn(stored).toString("hex"), bytesIn(server).toString("hex")], [STORED, SERVER]);
});

test("a proof gives the key away to whoever has what checks it, and to nobody else", async () => {
  const challenge = { $blob: Buffer.alloc(32, 7).toString("base64") };
  const { fields, isSigned } = await secret.prove(challenge);
  const nonce = bytesIn(fields.nonce);
  const said = Buffer.concat([Buffer.from("weft channel proof 1\0chat\0games.chess\0"), Buffer.alloc(32, 7), nonce]);
  const mask = createHmac("sha256", Buffer.from(STORED, "hex")).update(said).digest();
  const client = bytesIn(fields.proof).map((each, at) => each ^ mask[at]);
  assert.equal(createHash("sha256").update(client).digest("hex"), STORED);
  const signature = createHmac("sha256", Buffer.from(SERVER, "hex")).update(said).digest();
  assert.ok(isSigned({ $blob: signature.toString("base64") }));
  for (const wrong of [Buffer.alloc(32), signature.subarray(1)]) {
    assert.ok(!isSigned({ $blob: wrong.toString("base64") }));
  }
  assert.ok(!isSigned(undefined));
});

test("no two proofs are the same", async () => {
  const challenge = { $blob: Buffer.alloc(32, 7).toString("base64") };
  const [one, other] = [await secret.prove(challenge), await secret.prove(challenge)];
  assert.notEqual(one.fields.nonce.$blob, other.fields.nonce.$blob);
});

test("a secret shows nothing of itself", () => {
  assert.equal(JSON.stringify(secret), "{}");
  assert.equal(inspect(secret), "Secret {}");
});
