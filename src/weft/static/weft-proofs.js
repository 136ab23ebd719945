// How a page shows to know the password of a channel without saying it; docs/channels.md has the bytes.
//
// Of the password only keys are kept, in private fields: nothing that prints a secret shows them.

import { blobOf } from "./weft-json.js";
import { scrypt, subtle } from "./weft-scrypt.js";

const COST = { cost: 16_384, size: 8, parallel: 1, length: 32 };
const NONCE_BYTES = 32;

const encoder = new TextEncoder();
const bytesOf = (text) => encoder.encode(text);

/** What proves that a password is known. */
export class Secret {
  #service;
  #name;
  #client;
  #server;

  /** The keys of a password; they take about a quarter of a second. */
  static async of(service, name, password) {
    const salt = await digest(joined("weft channel salt 1", 0, service, 0, name));
    const salted = await scrypt(bytesOf(password.normalize("NFKC")), salt, COST);
    const secret = new Secret();
    secret.#service = service;
    secret.#name = name;
    secret.#client = await code(salted, bytesOf("client"));
    secret.#server = await code(salted, bytesOf("server"));
    return secret;
  }

  /** What a gateway is given to check proofs. */
  async verifier() {
    return { stored: blobOf(await digest(this.#client)), server: blobOf(this.#server) };
  }

  /** The fields that answer a challenge, and what tells if the gateway's signature is right. */
  async prove(challenge) {
    const nonce = crypto.getRandomValues(new Uint8Array(NONCE_BYTES));
    const asked = bytesIn(challenge);
    const said = joined("weft channel proof 1", 0, this.#service, 0, this.#name, 0, asked, nonce);
    const mask = await code(await digest(this.#client), said);
    const proof = this.#client.map((each, at) => each ^ mask[at]);
    const signature = await code(this.#server, said);
    return {
      fields: { challenge, nonce: blobOf(nonce), proof: blobOf(proof) },
      isSigned: (blob) => isSame(bytesIn(blob), signature),
    };
  }
}

async function digest(bytes) {
  return new Uint8Array(await subtle().digest("SHA-256", bytes));
}

async function code(key, bytes) {
  const how = { name: "HMAC", hash: "SHA-256" };
  const known = await subtle().importKey("raw", key, how, false, ["sign"]);
  return new Uint8Array(await subtle().sign("HMAC", known, bytes));
}

/** Texts, zero bytes and bytes, one after the other. */
function joined(...parts) {
  const pieces = parts.map((part) => (part === 0 ? [0] : typeof part === "string" ? bytesOf(part) : part));
  return Uint8Array.from(pieces.flatMap((piece) => [...piece]));
}

/** It takes as long whether they differ early, late or not at all. */
function isSame(one, other) {
  if (one.length !== other.length) return false;
  return one.reduce((difference, each, at) => difference | (each ^ other[at]), 0) === 0;
}

function bytesIn(blob) {
  return Uint8Array.from(atob(blob?.$blob ?? ""), (each) => each.charCodeAt(0));
}
