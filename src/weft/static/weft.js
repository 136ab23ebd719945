// Weft for browsers and Node: publish, subscribe and ask, over whatever gets through.
//
//     import { connect } from "http://127.0.0.1:7411/weft.js";
//     const weft = await connect("http://127.0.0.1:7411", { service: "chat" });
//
// A connection comes back by itself, and nothing in it grows without a bound. What may have been
// missed meanwhile is told as a "gap". docs/javascript.md says the rest.

import { Calls } from "./weft-calls.js";
import { Channels } from "./weft-channels.js";
import { Places } from "./weft-closest.js";
import { WeftError, errorFromWire, failure, refuseUnknown } from "./weft-errors.js";
import { Listeners } from "./weft-listeners.js";
import { Message } from "./weft-message.js";
import { PUBLISH_OPTIONS, REQUEST_OPTIONS, TRANSPORTS, checked } from "./weft-options.js";
import { PageLife } from "./weft-page.js";
import { Received } from "./weft-received.js";
import { Subscription, Subscriptions } from "./weft-subscriptions.js";

export { WeftError };

// The transport that worked is tried alone, but now and then all are: the network may be another.
const ATTEMPTS_ALONE = 3;
// How long a gateway that says goodbye, or a connection that is closed, waits for answers.
const GRACE = 1_000;
// A connection that falls silent earlier than this is next time given more time before it is given up.
const STUCK = 60_000;

/** Connect to a gateway; resolves once it has said welcome. */
export async function connect(url, options = {}) {
  const connection = new Connection(url, options);
  await connection.ready;
  return connection;
}

class Connection {
  #options;
  #calls;
  #subscriptions = new Subscriptions();
  #received = new Received();
  #listeners = new Listeners();
  #channels;
  #link = null;
  // One conversation: it may outlive a link, if its tunnel is taken up again.
  #session = null;
  #proven = "";
  #places;
  // What can be taken up again, and where.
  #resume = null;
  #resumeBase = "";
  #isLeaving = false;
  #isClosing = false;
  #closing = null;
  #dialing = null;
  #heartbeat;
  #status = { state: "connecting" };
  #settleReady;
  #page;

  constructor(url, options) {
    this.#options = checked(url, options);
    this.#heartbeat = this.#options.heartbeat;
    this.#places = new Places(this.#options);
    this.#calls = new Calls(this.#options.bufferLimit);
    const talk = {
      say: async (head, how) => this.#say(head, how),
      listen: (path, handler, how) => this.#listen(path, handler, how),
      forget: (subscription) => this.#drop(subscription, failure("ConnectionLost", "the channel is not joined now")),
      tell: (event, value) => this.#listeners.tell(event, value),
      call: (handler, value) => this.#listeners.call(handler, value),
    };
    this.#channels = new Channels(talk, this.#options);
    this.ready = new Promise((resolve, reject) => {
      this.#settleReady = { resolve, reject };
    });
    const left = () => this.#leavePage(failure("ConnectionLost", "the page was left"));
    this.#page = new PageLife({ left, check: () => this.#link?.check() });
    this.#run();
  }

  /** What it is doing: `{ state, … }`, as told to `on("status")`. */
  get status() {
    return this.#status;
  }

  /** Publish; resolves with the id of the message when the gateway has taken it. */
  async publish(path, data = {}, options = {}) {
    refuseUnknown(options, PUBLISH_OPTIONS);
    const { reply, notBack, masked, resend = false, timeout = 0 } = options;
    const flags = { ...(notBack && { not_back: true }), ...(masked && { masked }) };
    return this.#say({ path, ...(reply && { reply }), ...flags }, { data, again: resend, timeout });
  }

  /** Ask one subscriber; resolves with its answer, a message. */
  async request(path, data = {}, options = {}) {
    refuseUnknown(options, REQUEST_OPTIONS);
    const { masked, resend = false, timeout = this.#options.timeout } = options;
    return this.#say({ path, request: true, ...(masked && { masked }) }, { data, again: resend, timeout });
  }

  /** Have a handler called with every message; resolves when the gateway has confirmed it. */
  async subscribe(path, handler, options = {}) {
    const { subscription, ready } = this.#listen(path, handler, options);
    await ready;
    return subscription;
  }

  /** Open a channel, with a `password` or without, and be in it. */
  async openChannel(name, options = {}) {
    this.#refuseIfClosed();
    return this.#channels.open(name, options);
  }

  /** Be in a channel that somebody opened. */
  async joinChannel(name, options = {}) {
    this.#refuseIfClosed();
    return this.#channels.join(name, options);
  }

  /** Call a handler on every "status", "gap" or "error"; what is returned takes that back. */
  on(event, handler) {
    return this.#listeners.on(event, handler);
  }

  /** Wait a moment for what was said to be taken, and leave. */
  close() {
    return (this.#closing ??= this.#close());
  }

  async #close() {
    this.#isClosing = true;
    if (this.#link) await this.#calls.quiet(GRACE);
    this.#end(null);
  }

  // The life of it: dial, talk, lose, pause, for ever.

  async #run() {
    let delay = this.#options.backoffFirst;
    let failures = 0;
    while (this.#status.state !== "closed") {
      const begun = Date.now();
      let error;
      try {
        const link = await this.#dial(failures);
        failures = 0;
        error = await link.lost;
        // Perhaps no more than a message that takes longer than that to come.
        const isStuck = error.name === "Silent" && Date.now() - begun < STUCK;
        this.#heartbeat = isStuck ? 2 * this.#heartbeat : this.#options.heartbeat;
        // One that is let in and thrown out at once must not hammer the gateway.
        if (Date.now() - begun > this.#options.backoffCap) delay = this.#options.backoffFirst;
      } catch (failed) {
        failures += 1;
        error = failed;
      }
      if (this.#status.state === "closed") return;
      const isGivenUp = !this.welcome && !this.#options.wait;
      if (!error.isPassing || isGivenUp || this.#isClosing) {
        this.#end(error);
        return;
      }
      this.#become({ state: "reconnecting", reason: error, attempt: failures + 1 });
      await this.#page.pause(delay * Math.random());
      delay = Math.min(2 * delay, this.#options.backoffCap);
    }
  }

  /** Open a link to the first gateway that has us; it is known by when it is lost. */
  async #dial(failures) {
    await this.#places.seek();
    for (;;) {
      try {
        return await this.#dialHere(failures);
      } catch (error) {
        if (!error.isPassing || this.#status.state === "closed" || !this.#places.next()) throw error;
      }
    }
  }

  /** Open a link by the first transport that can. */
  async #dialHere(failures) {
    const isAlone = this.#proven && failures % (ATTEMPTS_ALONE + 1) < ATTEMPTS_ALONE;
    let failed;
    for (const name of isAlone ? [this.#proven] : this.#options.transports) {
      try {
        return await this.#open(name);
      } catch (error) {
        if (!error.isPassing || this.#status.state === "closed") throw error;
        failed = error;
      }
    }
    throw failed;
  }

  #open(name) {
    return new Promise((resolve, reject) => {
      let whenLost;
      const lost = new Promise((settle) => (whenLost = settle));
      const { base } = this.#places;
      // Another gateway knows nothing of a conversation with this one.
      const resume = base === this.#resumeBase ? this.#resume : null;
      const link = new TRANSPORTS[name]({ ...this.#options, base, heartbeat: this.#heartbeat }, resume);
      // Known before it is open, so that close() ends it.
      this.#dialing = link;
      link.open({
        opened: (welcome, isResumed) => {
          this.#proven = name;
          this.#resumeBase = base;
          this.#begin(link, welcome, isResumed);
          resolve({ lost });
        },
        heard: (datagram) => this.#hear(datagram),
        refused: (ack, error) => this.#calls.refuse(ack, "", error),
        returned: (acks) => acks.forEach((ack) => this.#calls.giveBack(ack)),
        doubted: (acks, error) => {
          acks.forEach((ack) => this.#calls.doubt(ack, error));
          if (this.#link === link && !this.#isLeaving) this.#flush();
        },
        lost: (error, resume) => {
          if (this.#link === link) this.#lose(error, resume);
          whenLost(error);
          reject(error);
        },
      });
    });
  }

  #begin(link, welcome, isResumed) {
    const isGap = this.welcome && !isResumed && !this.#subscriptions.isEmpty;
    this.#link = link;
    this.#isLeaving = false;
    if (!isResumed) {
      this.#endSession(failure("ConnectionLost", "the connection was lost before an answer came"));
      this.#session = { inbox: welcome.inbox };
      this.welcome = welcome;
      this.#channels.began();
      this.#received.resume();
      for (const interest of this.#subscriptions.interests) this.#declare(interest);
    }
    this.#flush();
    this.#become({ state: "connected", transport: this.#proven, isResumed, url: this.#places.base, why: this.#places.why });
    this.#settleReady.resolve();
    if (isGap) this.#listeners.tell("gap", { reason: "reconnected", count: null });
  }

  #lose(error, resume) {
    this.#link = null;
    this.#resume = resume;
    if (!resume) this.#endSession(error);
  }

  #endSession(error) {
    this.#session = null;
    this.#calls.end(error);
  }

  #end(error) {
    if (this.#status.state === "closed") return;
    this.#isClosing = true;
    this.#become({ state: "closed", ...(error && { error }) });
    const reason = error ?? failure("NotOpen", "the connection is closed");
    this.#dialing?.leave(reason);
    this.#link = this.#session = null;
    this.#calls.close(reason);
    this.#channels.end();
    for (const subscription of this.#subscriptions) this.#drop(subscription, reason);
    this.#settleReady.reject(reason);
    // Whoever awaits it was told; otherwise nobody has to.
    this.ready.catch(() => {});
    this.#page.end();
  }

  /** End the conversation now, not when the gateway has waited long enough. */
  #leavePage(reason) {
    this.#dialing?.leave(reason);
    this.#lose(reason, null);
  }

  // What is said.

  #say(head, options) {
    this.#refuseIfClosed();
    const call = this.#calls.open(head, options);
    if (this.#link && !this.#isLeaving) this.#send(call);
    return call.answer;
  }

  #send(call) {
    const text = this.#calls.say(call, this.#session.inbox);
    const size = new TextEncoder().encode(text).length;
    const limit = this.#link.largest(this.welcome);
    if (size > limit) {
      // The gateway would hang up.
      const error = failure("BadField", `a datagram of ${size} bytes is over the limit of ${limit}`);
      this.#calls.refuse(call.ack, "", error);
    } else {
      this.#link.send(call.ack, text);
    }
  }

  #flush() {
    for (const call of this.#calls.unsent) this.#send(call);
  }

  /** Begin a subscription; `ready` resolves when the gateway has confirmed it. */
  #listen(path, handler, options) {
    this.#refuseIfClosed();
    if (typeof path !== "string" || typeof handler !== "function") {
      throw failure("UsageError", "a subscription is to a path, which is a string, and has a function as its handler");
    }
    const subscription = new Subscription(path, handler, options, (each) => this.#unsubscribe(each));
    const interests = this.#subscriptions.add(subscription);
    for (const interest of interests) {
      if (this.#session && interest.count === 1) this.#declare(interest);
    }
    const ready = Promise.all(interests.map((interest) => interest.ready)).catch(async (error) => {
      await this.#unsubscribe(subscription);
      throw error;
    });
    return { subscription, ready };
  }

  #declare(interest) {
    const session = this.#session;
    this.#say(interest.head, { bound: true, again: true }).then(interest.confirm, (error) => {
      // In the next conversation it is declared anew.
      if (this.#session === session) this.#refused(interest, error);
    });
  }

  #refused(interest, error) {
    interest.refuse(error);
    for (const subscription of this.#subscriptions) {
      if (interest.isConfirmed && interest.isOf(subscription)) {
        this.#unsubscribe(subscription);
        this.#listeners.tell("error", error);
      }
    }
  }

  #drop(subscription, error) {
    subscription.isOpen = false;
    for (const interest of this.#subscriptions.remove(subscription)) interest.refuse(error);
  }

  async #unsubscribe(subscription) {
    subscription.isOpen = false;
    const gone = this.#subscriptions.remove(subscription);
    if (!this.#session || this.#isClosing) return;
    const forgotten = gone.map(({ pattern, group }) =>
      this.#say({ forget: pattern, ...(group && { group }) }, { bound: true, again: true }),
    );
    // With the conversation it is over, too.
    await Promise.allSettled(forgotten);
  }

  #respond(reply, session, { data, error }) {
    if (session !== this.#session) {
      throw failure("ConnectionLost", "the connection that was asked is gone, and nobody waits for the answer");
    }
    if (error !== undefined) return this.#say({ path: reply, error }, { bound: true });
    return this.#say({ path: reply }, { data: data ?? {}, bound: true });
  }

  #refuseIfClosed() {
    if (this.#isClosing) throw failure("NotOpen", "the connection is closed");
  }

  // What is heard.

  #hear(datagram) {
    if (datagram.error) this.#hearError(datagram);
    // Beside the id of a published message its confirmation has one of its own in a tunnel.
    else if ("ok" in datagram) this.#calls.confirm(datagram.ok, datagram.published ?? datagram.id);
    else if (datagram.gap) this.#listeners.tell("gap", datagram.gap);
    else if (datagram.goodbye) this.#leave(datagram.goodbye);
    else if (datagram.path && !("pong" in datagram)) this.#hearMessage(datagram);
  }

  #hearMessage(datagram) {
    const session = this.#session;
    const message = new Message(datagram, (reply, answer) => this.#respond(reply, session, answer));
    if (this.#calls.answer(message.path, message)) return;
    const receivers = this.#subscriptions.receivers(message.path, message.isRequest);
    // A request, and a message of a group, goes to one gateway, and so comes once.
    const mayRepeat = !message.isRequest && !receivers.some(({ group }) => group);
    if (mayRepeat && this.#received.isRepeated(message.id)) return;
    for (const subscription of receivers) this.#handle(subscription.handler, message);
  }

  /** A handler that fails is reported, and whoever asked is told that there is no answer. */
  async #handle(handler, message) {
    if (await this.#listeners.call(handler, message)) return;
    // With the conversation the requester is told otherwise.
    await message.fail().catch(() => {});
  }

  #hearError(datagram) {
    const error = errorFromWire(datagram.error);
    if (this.#calls.refuse(datagram.ack, datagram.reply, error)) return;
    // Instead of an answer.
    if (this.#calls.refuse(undefined, datagram.path, error)) return;
    if (!this.#channels.lost(datagram.path, error)) this.#listeners.tell("error", error);
  }

  /** The gateway closes down: let it answer what it took, and go elsewhere. */
  async #leave({ reason, text, elsewhere }) {
    const link = this.#link;
    this.#places.advise(elsewhere);
    this.#isLeaving = true;
    await this.#calls.quiet(GRACE);
    link?.close(failure("Draining", text || reason || "the gateway says goodbye"));
  }

  #become(status) {
    this.#status = status;
    this.#listeners.tell("status", status);
  }
}
