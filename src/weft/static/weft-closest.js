// Where to connect: the gateway that was given, or the closest of those that one names.
//
// Regions and load are a first guess, by which the one that is asked ranks them. What counts is the
// round trip that is measured here. Every wait is bounded, those that were given are always tried
// in the end, and whoever began with TLS is never led to a gateway without.

import { errorFromAnswer } from "./weft-errors.js";

// How long the one that is asked may take, and how long all measurements together.
const ASK_TIMEOUT = 1_000;
const MEASURE_TIMEOUT = 1_000;
// So many are measured, and the best of so many round trips counts.
const MEASURED_MAX = 3;
const TRIES = 2;
// Not farther than the closest, as far as anybody could tell: by so much, or so large a part.
const NEAR = 5;
const NEAR_PART = 0.1;

export class Places {
  #options;
  #found = [];
  #source = "";
  #problem = "";
  #advice = null;
  #bases;
  #at = 0;

  constructor(options) {
    this.#options = options;
    this.#bases = [options.base];
  }

  /** Where to connect now. */
  get base() {
    return this.#bases[this.#at];
  }

  /** Why there. */
  get why() {
    const place = this.#found.findIndex(({ base }) => base === this.base);
    if (place < 0) return this.#problem ? `given, as ${this.#problem}` : "given";
    const order = place ? `number ${place + 1}` : "the closest";
    return `${order} of ${this.#found.length} that answered, in ${this.#found[place].rtt.toFixed(1)} ms; ${this.#source}`;
  }

  /** A gateway that drains says where else to go; who was given one address stays with it. */
  advise(elsewhere) {
    const candidates = Array.isArray(elsewhere) ? elsewhere.map((address) => ({ address })) : [];
    this.#advice = { candidates, from: this.base };
    this.#found = [];
  }

  /** Look for the closest gateway, unless one is remembered or nobody asked for it. */
  async seek() {
    const { closest, base } = this.#options;
    const advice = this.#advice;
    this.#advice = null;
    if (!closest || this.#found.length) return;
    if (advice?.candidates.length) await this.#choose(advice.candidates, advice.from, `advised by ${advice.from}`);
    if (!this.#found.length) await this.#ask(closest === true ? base : closest);
    const best = this.#found.map((each) => each.base);
    this.#bases = [...best, ...(best.includes(base) ? [] : [base])];
    this.#at = 0;
  }

  /** Turn to the next; false once all were tried, and then they are looked for anew. */
  next() {
    this.#at = (this.#at + 1) % this.#bases.length;
    if (this.#at === 0) this.#found = [];
    return this.#at > 0;
  }

  async #ask(asked) {
    const { service, region, key } = this.#options;
    const query = new URLSearchParams({ service, limit: MEASURED_MAX, ...(region && { region }) });
    try {
      const headers = key ? { Authorization: `Bearer ${key}` } : {};
      const signal = AbortSignal.timeout(ASK_TIMEOUT);
      const answer = await fetch(`${asked}/closest?${query}`, { headers, signal, cache: "no-store" });
      if (!answer.ok) throw await errorFromAnswer(answer);
      const { candidates } = await answer.json();
      if (!Array.isArray(candidates)) throw new Error("the answer has no candidates");
      await this.#choose(candidates, asked, `named by ${asked}`);
    } catch (error) {
      this.#problem = `${asked} names no gateways: ${error.cause?.message ?? error.message}`;
    }
  }

  async #choose(candidates, asked, source) {
    const isSecure = [asked, this.#options.base].some((base) => base.startsWith("https:"));
    const bases = candidates
      .slice(0, MEASURED_MAX)
      .map((each) => baseOf(each?.address, asked))
      .filter((base) => base && (!isSecure || base.startsWith("https:")));
    const trips = await Promise.all(bases.map(tripTo));
    const found = bases.map((base, place) => ({ base, rtt: trips[place] })).filter(({ rtt }) => rtt < Infinity);
    const closest = Math.min(...found.map(({ rtt }) => rtt));
    const near = closest + Math.max(NEAR, NEAR_PART * closest);
    const far = ({ rtt }) => (rtt <= near ? 0 : rtt);
    // A sort that keeps the order of what is equal keeps that of the guess.
    this.#found = found.sort((one, other) => far(one) - far(other));
    this.#source = source;
    this.#problem = found.length ? "" : `none of ${bases.length} gateways ${source} answered`;
  }
}

/** The URL of a gateway by its address; of one that does not know where it is, the one that was asked. */
function baseOf(address, asked) {
  if (address === "") return asked;
  if (typeof address !== "string") return null;
  const [, scheme = "tcp", place] = /^(?:(\w+):\/\/)?(.+)$/.exec(address) ?? [];
  const protocol = { tcp: "http", tls: "https" }[scheme];
  try {
    const url = new URL(`${protocol}://${place}`);
    return protocol && url.pathname === "/" && !url.username ? url.origin : null;
  } catch {
    // Whatever it is, it is no address.
    return null;
  }
}

/** The best round trip to a gateway in milliseconds; Infinity if it does not answer in time. */
async function tripTo(base) {
  const signal = AbortSignal.timeout(MEASURE_TIMEOUT);
  let best = Infinity;
  try {
    for (let tries = 0; tries < TRIES; tries += 1) {
      const begun = performance.now();
      const answer = await fetch(`${base}/healthz`, { signal, cache: "no-store" });
      await answer.text();
      if (!answer.ok) return Infinity;
      best = Math.min(best, performance.now() - begun);
    }
  } catch {
    // What was measured so far counts.
  }
  return best;
}
