// The vectors of RFC 7914, and what OpenSSL says of a channel's password.

import assert from "node:assert/strict";
import { scryptSync } from "node:crypto";
import { test } from "node:test";

import { scrypt } from "../../src/weft/static/weft-scrypt.js";

const bytes = (text) => new TextEncoder().encode(text);
const hex = (found) => Buffer.from(found).toString("hex");

for (const [password, salt, cost, size, parallel, expected] of [
  ["", "", 16, 1, 1, "77d6576238657b203b19ca42c18a0497f16b4844e3074ae8dfdffa3fede21442fcd0069ded0948f8326a753a0fc81f17e8d3e0fb2e0d3628cf35e20c38d18906"],
  ["password", "NaCl", 1024, 8, 16, "fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b3731622eaf30d92e22a3886ff109279d9830dac727afb94a83ee6d8360cbdfa2cc0640"],
  ["pleaseletmein", "SodiumChloride", 16384, 8, 1, "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2d5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887"],
]) {
  test(`RFC 7914: N = ${cost}, r = ${size}, p = ${parallel}`, async () => {
    const found = await scrypt(bytes(password), bytes(salt), { cost, size, parallel, length: 64 });
    assert.equal(hex(found), expected);
  });
}

test("it is what OpenSSL makes of the same", async () => {
  for (const [password, length] of [["Pferd", 32], ["🐎 корова", 32], ["x".repeat(100), 17]]) {
    const found = await scrypt(bytes(password), bytes("salt"), { cost: 64, size: 3, parallel: 2, length });
    assert.equal(hex(found), hex(scryptSync(password, "salt", length, { N: 64, r: 3, p: 2 })));
  }
});

test("the page has its turn meanwhile", async () => {
  let turns = 0;
  const timer = setInterval(() => (turns += 1), 1);
  await scrypt(bytes("pleaseletmein"), bytes("salt"), { cost: 16384, size: 8, parallel: 1, length: 32 });
  clearInterval(timer);
  assert.ok(turns > 0);
});
