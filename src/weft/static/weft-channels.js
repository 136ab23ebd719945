// Channels that a connection is in: spaces of paths of their own, for those who joined them.
//
// They outlive a conversation. In the next one each is joined anew, perhaps by another id, and only then
// is the gateway asked for what is heard in it. What is said meanwhile waits for that.

import { failure, refuseUnknown } from "./weft-errors.js";
import { PUBLISH_OPTIONS, REQUEST_OPTIONS } from "./weft-options.js";
import { Secret } from "./weft-proofs.js";

const ASK = "/_WEFT/ask/channel/";
const ROOT = "/_CHANNEL/";
// How often a channel is tried again: a fifth wrong password would make everybody wait.
const TRIES = 4;
const PAUSE_FIRST = 500;
// A gateway asks all others and waits two seconds for them.
const ANSWER_MIN = 5_000;
const OVER = ["ChannelLost", "ChannelClosed", "NotAMember"];
// Nobody answers a challenge for a channel without a password, and then there are soon too many.
const NOT_THERE = ["WrongPassword", "TooMany"];
const NOT_YET = [...NOT_THERE, "ChannelExists"];

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** What is heard in a channel, wherever that is now; made by `subscribe`, ended by `close`. */
class ChannelSubscription {
  #end;

  constructor(path, handler, options, end) {
    Object.assign(this, { path, handler, options, isOpen: true, current: null });
    this.#end = end;
  }

  /** End it; resolves when the gateway has taken it back. */
  close() {
    return this.#end(this);
  }
}

/** One channel; made by `openChannel` and `joinChannel`. */
class Channel {
  #channels;
  #subscriptions = new Set();
  #settle;
  #joined;
  #isJoined = true;
  // Called with the reason when it ends against our will.
  onlost = null;

  constructor(channels, name, secret) {
    this.#channels = channels;
    Object.assign(this, { name, id: "", isProtected: Boolean(secret), isOpen: true, error: null, silent: [] });
    this.park();
  }

  /** Say something to everybody in it; resolves when the gateway has taken it. */
  async publish(path, data = {}, options = {}) {
    refuseUnknown(options, PUBLISH_OPTIONS);
    const { reply, notBack, masked, ...how } = options;
    const flags = { ...(reply && { reply }), ...(notBack && { not_back: true }), ...(masked && { masked }) };
    return this.#say(path, flags, data, how);
  }

  /** Ask one of those who are in it; resolves with the answer, a message. */
  async request(path, data = {}, options = {}) {
    refuseUnknown(options, REQUEST_OPTIONS);
    const { masked, timeout = this.#channels.timeout, ...how } = options;
    return this.#say(path, { request: true, ...(masked && { masked }) }, data, { timeout, ...how });
  }

  /** Have a handler called with what is said in it, to `/>` for all; resolves when that is confirmed. */
  async subscribe(path, handler, options = {}) {
    await this.#joined;
    const subscription = new ChannelSubscription(path, handler, options, (each) => this.#unsubscribe(each));
    const ready = this.#listen(subscription);
    this.#subscriptions.add(subscription);
    try {
      await ready;
    } catch (error) {
      subscription.isOpen = false;
      this.#subscriptions.delete(subscription);
      throw error;
    }
    return subscription;
  }

  /** The path of a message as it is said within a channel. */
  pathOf({ path }) {
    if (!path.startsWith(ROOT)) throw failure("UsageError", `a message to ${path} was not sent in a channel`);
    return path.slice(path.indexOf("/", ROOT.length));
  }

  /** Be in it no more. */
  leave() {
    return this.#channels.leave(this);
  }

  /** End it for everybody, which takes whoever opened it, a service or an admin. */
  close() {
    return this.#channels.close(this);
  }

  // For those who keep it.

  /** The conversation ended: nothing can be said or heard until it was joined again. */
  park() {
    for (const { current } of this.#subscriptions) this.#channels.forget(current);
    // Whoever waits already waits for the same.
    if (!this.#isJoined) return;
    this.#isJoined = false;
    this.#joined = new Promise((resolve, reject) => (this.#settle = { resolve, reject }));
    // Perhaps nobody waits for it.
    this.#joined.catch(() => {});
  }

  /** It was joined, and is heard where it is now; unless the conversation ends before that. */
  async resume(id, isNow) {
    this.id = id;
    await Promise.all([...this.#subscriptions].map((each) => this.#again(each)));
    if (!isNow()) return;
    this.#isJoined = true;
    this.#settle.resolve();
  }

  /** It is over; there is no reason if that was our own wish. */
  end(error) {
    this.isOpen = false;
    this.error = error;
    for (const each of this.#subscriptions) {
      each.isOpen = false;
      // The gateway has none of what is over, and must be told of what we leave.
      if (error) this.#channels.forget(each.current);
      else each.current.close();
    }
    this.#subscriptions.clear();
    const reason = error ?? failure("NotOpen", `the channel ${this.name} was left`);
    this.#settle.reject(reason);
    this.#joined = Promise.reject(reason);
    this.#joined.catch(() => {});
  }

  hears(path) {
    return [...this.#subscriptions].some((each) => each.current.patterns.includes(path));
  }

  async #again(subscription) {
    try {
      await this.#listen(subscription);
    } catch (error) {
      // With the conversation it is asked for once more; refused, it is over.
      if (error.isPassing) return;
      subscription.isOpen = false;
      this.#subscriptions.delete(subscription);
      this.#channels.tell("error", error);
    }
  }

  #listen(subscription) {
    const { path, handler, options } = subscription;
    const { subscription: current, ready } = this.#channels.listen(this.#full(path), handler, options);
    subscription.current = current;
    return ready;
  }

  async #unsubscribe(subscription) {
    subscription.isOpen = false;
    if (this.#subscriptions.delete(subscription)) await subscription.current.close();
  }

  /** Say something in this conversation; with `resend`, and if it is lost, in the next. */
  async #say(path, flags, data, { resend = false, timeout = 0 }) {
    for (;;) {
      await this.#joined;
      const head = { path: this.#full(path), ...flags };
      try {
        return await this.#channels.say(head, { data, bound: true, timeout });
      } catch (error) {
        if (!resend || error.name !== "ConnectionLost") throw error;
      }
    }
  }

  #full(path) {
    if (typeof path !== "string" || !path.startsWith("/")) {
      throw failure("BadSubject", "a path in a channel is a string that begins with /");
    }
    return `${ROOT}${this.id}${path}`;
  }
}

/** All channels of a connection, which gives `say`, `listen`, `forget`, `tell` and `call`. */
export class Channels {
  #connection;
  #service;
  // By name; with the keys, and whether it was opened here.
  #all = new Map();
  #conversation = 0;
  // A gateway gives a connection few challenges at a time: they are answered one by one.
  #turn = Promise.resolve();

  constructor(connection, { service, timeout }) {
    this.#connection = connection;
    this.#service = service;
    this.timeout = timeout;
  }

  open(name, options) {
    return this.#begin(name, options, true);
  }

  join(name, options) {
    return this.#begin(name, options, false);
  }

  async leave(channel) {
    if (!channel.isOpen) return;
    this.#end(channel, null);
    // With the conversation it was left, too.
    await this.#ask("leave", { id: channel.id }).catch(() => {});
  }

  async close(channel) {
    if (!channel.isOpen) throw channel.error ?? failure("NotOpen", `the channel ${channel.name} was left`);
    const known = this.#all.get(channel.name);
    known.isClosing = true;
    try {
      await this.#ask("close", { id: channel.id });
    } finally {
      known.isClosing = false;
    }
    this.#end(channel, null);
  }

  // What channels need of the connection.

  say(head, options) {
    return this.#connection.say(head, options);
  }

  listen(path, handler, options) {
    return this.#connection.listen(path, handler, options);
  }

  forget(subscription) {
    this.#connection.forget(subscription);
  }

  tell(event, value) {
    this.#connection.tell(event, value);
  }

  // What the connection tells.

  /** A new conversation began: join everything again. */
  began() {
    this.#conversation += 1;
    for (const known of this.#all.values()) {
      if (!known.channel.id) continue;
      known.channel.park();
      this.#joinAgain(known, this.#conversation);
    }
  }

  /** The gateway took something back: say if it was in a channel, and end what is over. */
  lost(path, error) {
    if (!path?.startsWith(ROOT)) return false;
    const known = [...this.#all.values()].find(({ channel }) => path.startsWith(`${ROOT}${channel.id}/`));
    if (!known) return true;
    const { channel, isClosing } = known;
    const isOver = OVER.includes(error.name);
    const isWhole = path === `${ROOT}${channel.id}/>`;
    if (isWhole && (isOver || !channel.hears(path))) this.#lose(channel, isClosing ? null : error);
    // Before the end of a channel comes that of what is heard there.
    return isOver || isWhole;
  }

  /** The connection is closed. */
  end() {
    for (const { channel } of [...this.#all.values()]) this.#end(channel, null);
  }

  async #begin(name, options = {}, isOpener) {
    refuseUnknown(options, ["password"]);
    const { password } = options;
    if (typeof name !== "string") throw failure("BadSubject", "the name of a channel is a string");
    if (password === "") throw failure("BadOption", "the password is empty: leave it out for a channel without one");
    if (this.#all.has(name)) throw failure("UsageError", `this connection is in the channel ${name} already`);
    // From now on nobody else joins it here.
    this.#all.set(name, { channel: { id: "" } });
    try {
      const secret = password == null ? null : await Secret.of(this.#service, name, password);
      const channel = new Channel(this, name, secret);
      const known = { channel, secret, isOpener, isClosing: false };
      await this.#join(known);
      return channel;
    } catch (error) {
      this.#all.delete(name);
      throw error;
    }
  }

  async #join(known) {
    const id = await (known.isOpener ? this.#open(known) : this.#enter(known));
    const conversation = this.#conversation;
    this.#all.set(known.channel.name, known);
    await known.channel.resume(id, () => this.#conversation === conversation);
  }

  async #open({ channel, secret }) {
    const verifier = secret ? await secret.verifier() : {};
    const { id, silent } = await this.#ask("open", { name: channel.name, ...verifier });
    channel.silent = silent ?? [];
    return id;
  }

  #enter(known) {
    const entering = this.#turn.then(() => this.#enterInTurn(known));
    this.#turn = entering.catch(() => {});
    return entering;
  }

  async #enterInTurn({ channel: { name }, secret }) {
    const { challenge, id } = await this.#ask("join", { name });
    if (!challenge) {
      if (!secret) return id;
      // Others are in it than those who know the password.
      await this.#ask("leave", { id });
      throw failure("WrongPassword", `the channel ${name} has no password: join it without one`);
    }
    if (!secret) throw failure("WrongPassword", `there is no channel ${name} that needs no password`);
    const { fields, isSigned } = await secret.prove(challenge);
    const proven = await this.#ask("prove", { name, ...fields });
    if (isSigned(proven.signature)) return proven.id;
    await this.#ask("leave", { id: proven.id });
    throw failure("ProtocolError", `the gateway let us into the channel ${name} without knowing its password`);
  }

  async #joinAgain(known, conversation) {
    const isNow = () => this.#conversation === conversation && known.channel.isOpen;
    try {
      const id = await this.#retry(known, isNow);
      if (isNow()) await known.channel.resume(id, isNow);
      // It was left while the gateway let us in.
      else if (!known.channel.isOpen) await this.#ask("leave", { id });
    } catch (error) {
      if (isNow()) this.#lose(known.channel, error);
    }
  }

  async #retry(known, isNow) {
    let delay = PAUSE_FIRST;
    // Whoever opened it comes first: it may be gone, and a vain try is a wrong password.
    if (!known.isOpener) await pause(delay * Math.random());
    for (let left = TRIES - 1; ; left -= 1) {
      try {
        return await this.#comeBack(known);
      } catch (error) {
        const mayPass = error.isPassing || NOT_YET.includes(error.name);
        if (!left || !mayPass || !isNow()) throw error;
      }
      // At least half: the gateway must have the time to hear of the channel.
      await pause(delay * (0.5 + Math.random() / 2));
      delay *= 2;
    }
  }

  async #comeBack(known) {
    try {
      return await this.#enter(known);
    } catch (error) {
      if (!NOT_THERE.includes(error.name) || !known.isOpener) throw error;
      return this.#open(known);
    }
  }

  async #ask(verb, fields) {
    const timeout = Math.max(this.timeout, ANSWER_MIN);
    const head = { path: `${ASK}${verb}`, request: true };
    // A question that was not asked yet can wait for a connection; an answer to one cannot.
    const bound = !["open", "join"].includes(verb);
    return (await this.say(head, { data: fields, bound, timeout })).data;
  }

  #lose(channel, error) {
    this.#end(channel, error);
    if (!error) return;
    if (channel.onlost) this.#connection.call(channel.onlost, error);
    else this.tell("error", error);
  }

  #end(channel, error) {
    if (this.#all.get(channel.name)?.channel === channel) this.#all.delete(channel.name);
    if (channel.isOpen) channel.end?.(error);
  }
}
