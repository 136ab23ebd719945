// A message and the way back to whoever awaits an answer to it.

import { failure } from "./weft-errors.js";

// What a requester gets if a handler throws: no more than that.
const FAILED = "the responder failed; its log says why";

/** One message, as handlers and requesters get it. */
export class Message {
  #answer;
  #isAnswered = false;

  /** `answer` sends the rest of a datagram, its `data` or its `error`, to where one is awaited. */
  constructor({ id, path, data, reply = "", request = false, from_gateway: isFromGateway = false }, answer) {
    Object.assign(this, { id, path, data, reply, isRequest: request, isFromGateway });
    this.#answer = answer;
  }

  /** Answer it; resolves when the gateway has taken the answer. */
  async respond(data) {
    return this.#respond({ data });
  }

  /** Answer that it could not be done, and why; the request rejects with `RequestFailed`. */
  async respondError(text) {
    return this.#respond({ error: String(text) });
  }

  /** Answer a request whose handler threw, if it has no answer; why is not said. */
  async fail() {
    if (this.isRequest && !this.#isAnswered) await this.#respond({ error: FAILED });
  }

  async #respond(answer) {
    if (!this.reply) throw failure("UsageError", `${this.path} awaits no answer`);
    if (this.isRequest && this.#isAnswered) throw failure("UsageError", `${this.path} was answered already`);
    const taken = this.#answer(this.reply, answer);
    this.#isAnswered = true;
    return taken;
  }
}
