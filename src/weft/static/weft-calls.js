// What was said, or is yet to be said, and waits for its answer.
//
// Bounded: all of it together may have so many characters. What was sent when a conversation ends
// is in doubt, so it fails, or is said again in the next one if its caller asked for that.

import { failure } from "./weft-errors.js";
import { textOf } from "./weft-json.js";

// What a call takes beside its text, about.
const COST = 256;
const OF_GATEWAY = "/_WEFT/";
// Bytes of a name that nobody can guess, and how many names are drawn at once.
const NONCE_BYTES = 8;
const NONCES = 64;

export class Calls {
  #byAck = new Map();
  #byReply = new Map();
  #limit;
  #held = 0;
  #next = 1;

  constructor(limit) {
    this.#limit = limit;
  }

  /** The answers that are awaited from the gateway itself. */
  get awaited() {
    const isAwaited = (call) => call.isSent && !call.head.request;
    return [...this.#byAck.values()].filter(isAwaited).map((call) => call.answer);
  }

  /** Wait so many milliseconds at most for what was sent to be answered. */
  async quiet(milliseconds) {
    let timer;
    const late = new Promise((resolve) => (timer = setTimeout(resolve, milliseconds)));
    await Promise.race([Promise.allSettled(this.awaited), late]);
    clearTimeout(timer);
  }

  /** What has yet to be sent, oldest first. */
  get unsent() {
    return [...this.#byAck.values()].filter((call) => !call.isSent);
  }

  /**
   * Take in something to say; its `answer` is a promise. `head` is the datagram but for its data.
   * With `again` it is said again in the next conversation, with `bound` only in this one.
   */
  open(head, { data, again = false, bound = false, timeout = 0 } = {}) {
    const call = { ack: this.#next++, head, data: textOf(data), again, bound, isSent: false, reply: "" };
    // What is said again in every conversation must never be what does not fit.
    call.size = "path" in head ? COST + call.data.length + JSON.stringify(head).length : 0;
    if (this.#held + call.size > this.#limit) {
      throw failure("Overloaded", `${this.#held} of ${this.#limit} characters wait to be taken by the gateway`);
    }
    call.answer = new Promise((resolve, reject) => Object.assign(call, { resolve, reject }));
    if (timeout > 0) {
      const late = () => this.#fail(call, failure("TimedOut", `no answer within ${timeout} ms`));
      call.timer = setTimeout(late, timeout);
    }
    this.#held += call.size;
    this.#byAck.set(call.ack, call);
    return call;
  }

  /** The datagram that says it, from now on sent; requests are answered below the inbox. */
  say(call, inbox) {
    const head = { ...call.head, ack: call.ack };
    if (head.request) {
      this.#byReply.delete(call.reply);
      head.reply = call.reply = `${inbox}/${nonce()}`;
      this.#byReply.set(call.reply, call);
    }
    call.isSent = true;
    const text = JSON.stringify(head);
    return call.data ? `${text.slice(0, -1)},"data":${call.data}}` : text;
  }

  /** The gateway took it; a request still waits for its answer. */
  confirm(ack, id) {
    const call = this.#byAck.get(ack);
    if (call?.head.request) call.isTaken = true;
    else if (call) this.#forget(call).resolve(id);
  }

  /** A message came that may be the answer to a request; say if it is. */
  answer(path, message) {
    const call = this.#byReply.get(path);
    // What only the gateway knows, nobody else can answer.
    const isForged = call?.head.path.startsWith(OF_GATEWAY) && !message.isFromGateway;
    if (call && !isForged) this.#forget(call).resolve(message);
    return Boolean(call);
  }

  /** It was refused; say if somebody waited for that. */
  refuse(ack, reply, error) {
    const call = this.#byAck.get(ack) ?? this.#byReply.get(reply);
    if (call) this.#fail(call, error);
    return Boolean(call);
  }

  /** It was not sent for certain. */
  giveBack(ack) {
    const call = this.#byAck.get(ack);
    if (call) call.isSent = false;
  }

  /** It was not sent for certain, nor for certain not; unless the gateway has said that it was. */
  doubt(ack, error) {
    const call = this.#byAck.get(ack);
    if (call && !call.isTaken) this.#lose(call, error);
  }

  /** A conversation ended. */
  end(error) {
    for (const call of this.#byAck.values()) {
      if (call.bound) this.#fail(call, error);
      else if (call.isSent) this.#lose(call, error);
    }
  }

  /** Nothing will be answered any more. */
  close(error) {
    for (const call of this.#byAck.values()) this.#fail(call, error);
  }

  #lose(call, error) {
    if (call.again) call.isSent = call.isTaken = false;
    else this.#fail(call, error);
  }

  #fail(call, error) {
    this.#forget(call).reject(error);
  }

  #forget(call) {
    clearTimeout(call.timer);
    this.#byAck.delete(call.ack);
    this.#byReply.delete(call.reply);
    this.#held -= call.size;
    return call;
  }
}

let drawn = "";

/** A name that nobody can guess: whoever can guess where an answer is awaited can forge it. */
function nonce() {
  if (!drawn) {
    const bytes = crypto.getRandomValues(new Uint8Array(NONCE_BYTES * NONCES));
    drawn = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  }
  const taken = drawn.slice(-2 * NONCE_BYTES);
  drawn = drawn.slice(0, -2 * NONCE_BYTES);
  return taken;
}
