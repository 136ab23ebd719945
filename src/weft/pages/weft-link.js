// What every way to a gateway has in common: a time to open in, a watch for silence, and one end.

import { errorFromAnswer, failure, lossOf } from "./weft-errors.js";

export class Link {
  #isOver = false;
  #isHeard = false;
  #isAsked = false;
  #opening;
  #watching;

  constructor(options, resume = null) {
    this.options = options;
    this.resume = resume;
    this.ending = new AbortController();
  }

  /**
   * Open it for whoever listens: that hears `opened(welcome, isResumed)` and `heard(datagram)` for
   * each that comes; of what it sent, `refused(ack, error)` if it cannot be said, `returned(acks)`
   * if it was not said for certain, and `doubted(acks, error)` if perhaps; and last, once,
   * `lost(error, resume)`: with a `resume` the conversation can be taken up again by another link of
   * the same kind.
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
    this.ending.abort();
    this.end();
    this.listener.lost(error, this.resume);
  }

  /** End it for good. */
  leave(error) {
    this.resume = null;
    this.close(error);
  }

  // For those derived from it, which have begin(), send(ack, text), end() and largest(welcome).

  opened(welcome, isResumed) {
    if (this.#isOver) return;
    clearTimeout(this.#opening);
    this.isOpen = true;
    clearInterval(this.#watching);
    this.#watching = setInterval(() => this.#watch(), 1000 * welcome.ping_s);
    this.listener.opened(welcome, isResumed);
  }

  heard(datagram) {
    this.stirred();
    if (!this.#isOver) this.listener.heard(datagram);
  }

  /** There was a sign of life. */
  stirred() {
    this.#isHeard = true;
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

  /** A connection can be gone without a word: whoever is silent is asked, then given up. */
  #watch() {
    if (this.#isHeard) {
      this.#isAsked = false;
    } else if (this.#isAsked) {
      this.close(failure("Silent", "the gateway answered no ping"));
    } else {
      this.#isAsked = true;
      this.send(0, JSON.stringify({ ping: "there?" }));
    }
    this.#isHeard = false;
  }
}
