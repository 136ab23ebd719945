// What every way to a gateway has in common: a time to open in, a watch for silence, one end, and a
// tunnel that outlives it.
//
// The gateway keeps what was not received, so whoever comes back with the id of the last datagram
// gets the rest, by whichever way; what it repeats is known by its id.

import { errorFromAnswer, failure, lossOf } from "./weft-errors.js";

// So many ids are remembered to know a datagram that is repeated.
const SEEN_MAX = 4096;
// How long the answer to a check may take: the network, or whoever looks at the page, has just come back.
const CHECK = 3_000;

let marks = 0;

export class Link {
  #isOver = false;
  #heardAt = 0;
  #settling = null;
  #opening;
  #watching;
  // Set while an answer to a ping is awaited.
  #answering = 0;

  constructor(options, resume = null) {
    this.options = options;
    this.resume = resume;
    this.ending = new AbortController();
  }

  /**
   * Open it for whoever listens: that hears `opened(welcome, isResumed)` and `heard(datagram)` for
   * each that comes; of what it sent, `refused(ack, error)` if it cannot be said, `returned(acks)`
   * if it was not said for certain, and `doubted(acks, error)` if perhaps; and last, once,
   * `lost(error, resume)`: with a `resume` the conversation can be taken up again by another link.
   */
  open(listener) {
    this.listener = listener;
    const { connectTimeout } = this.options;
    const late = () => this.close(failure("Unreachable", `no welcome within ${connectTimeout} ms`));
    this.#opening = setTimeout(late, connectTimeout);
    this.begin().catch((error) => this.close(lossOf(error)));
  }

  /** End it, and say why, unless it has ended already. */
  close(error) {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#opening);
    clearInterval(this.#watching);
    clearTimeout(this.#answering);
    this.ending.abort();
    this.end();
    this.listener.lost(error, this.resume);
  }

  /** End it for good, and the tunnel with it. */
  leave(error) {
    const { tunnel } = this.resume ?? {};
    this.resume = null;
    this.close(error);
    if (!tunnel || this.hasTakenLeave) return;
    const body = JSON.stringify({ goodbye: "closed", tunnel });
    // It outlives the page, and so it shows no key: to ask if it may takes longer than the page does.
    if (globalThis.navigator?.sendBeacon?.(this.address("events"), body)) return;
    const goodbye = { method: "POST", body, keepalive: true, signal: undefined };
    this.fetched(this.address("events"), goodbye).catch(() => {});
  }

  /** Close it unless there is a sign of life soon. */
  check() {
    if (this.isOpen && !this.#isOver) this.#ask(CHECK);
  }

  // For those derived from it, which have begin(), send(ack, text), end(), largest(welcome), ping(text)
  // and isMoving(): whether more of what was sent has left since it was asked last.

  /** How a tunnel is asked for: the one there was, or a new one. */
  query() {
    const { tunnel, last } = this.resume ?? {};
    return { ...(tunnel ? { tunnel, last } : { new: "1" }), name: this.options.name };
  }

  /** The header of a tunnel came: is it the one there was? */
  begun({ tunnel, welcome }) {
    const isResumed = this.resume?.tunnel === tunnel;
    if (!isResumed) this.resume = { tunnel, last: "", seen: new Set(), unanswered: new Set(), welcome };
    // Not of what is said from now on.
    const acks = [...this.resume.unanswered];
    this.opened(welcome, isResumed);
    if (acks.length && !this.#isOver) this.#settle(acks);
  }

  /** A datagram came; one that was heard before is not told again. */
  took(datagram) {
    const { seen, unanswered } = this.resume;
    this.stirred();
    this.resume.last = datagram.id;
    if (seen.has(datagram.id)) return;
    seen.add(datagram.id);
    if (seen.size > SEEN_MAX) seen.delete(seen.values().next().value);
    unanswered.delete(datagram.ok ?? datagram.ack);
    if (datagram.pong && datagram.pong === this.#settling?.mark) this.#settled();
    else this.heard(datagram);
  }

  opened(welcome, isResumed) {
    if (this.#isOver) return;
    clearTimeout(this.#opening);
    this.isOpen = true;
    this.stirred();
    clearInterval(this.#watching);
    const heartbeat = Math.min(this.options.heartbeat, 1000 * welcome.ping_s);
    this.#watching = setInterval(() => this.#watch(heartbeat), heartbeat);
    this.listener.opened(welcome, isResumed);
  }

  heard(datagram) {
    if (!this.#isOver) this.listener.heard(datagram);
  }

  /** There was a sign of life. */
  stirred() {
    this.#heardAt = performance.now();
    clearTimeout(this.#answering);
    this.#answering = 0;
  }

  /** Where a door of the service is. */
  address(door, query = {}) {
    const url = new URL(`${this.options.base}/${encodeURIComponent(this.options.service)}/${door}`);
    for (const [name, value] of Object.entries(query)) {
      if (value) url.searchParams.set(name, value);
    }
    return url;
  }

  /** An HTTP answer that is no refusal; the key goes with the request, and never into a URL. */
  async fetched(url, request = {}) {
    const { key } = this.options;
    const headers = { ...request.headers, ...(key && { Authorization: `Bearer ${key}` }) };
    const sent = { signal: this.ending.signal, cache: "no-store", ...request, headers };
    const answer = await fetch(url, sent);
    if (!answer.ok) throw await errorFromAnswer(answer);
    return answer;
  }

  /** What was said before a cut and did arrive was answered before this ping is. */
  #settle(acks) {
    this.#settling = { mark: `back ${(marks += 1)}`, acks };
    this.send(0, JSON.stringify({ ping: this.#settling.mark }));
  }

  #settled() {
    const { unanswered } = this.resume;
    const acks = this.#settling.acks.filter((ack) => unanswered.delete(ack));
    this.#settling = null;
    this.listener.doubted(acks, failure("ConnectionLost", "the connection was lost before this arrived"));
  }

  /** A connection can be gone without a word: a gateway that is silent is pinged, then given up. */
  #watch(heartbeat) {
    const silence = performance.now() - this.#heardAt;
    if (!this.#answering && silence > heartbeat / 2) this.#ask(heartbeat);
  }

  #ask(patience) {
    this.ping(JSON.stringify({ ping: "there?" }));
    this.isMoving();
    clearTimeout(this.#answering);
    this.#answering = setTimeout(() => this.#late(patience), patience);
  }

  #late(patience) {
    if (!this.isMoving()) this.close(failure("Silent", `the gateway answered no ping within ${patience} ms`));
    // The ping is behind it.
    else this.#answering = setTimeout(() => this.#late(patience), patience);
  }
}
