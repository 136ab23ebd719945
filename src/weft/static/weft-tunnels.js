// A tunnel to a gateway, where WebSockets do not get through: what it says comes by server-sent
// events or by long polls, what is said goes by requests of its own.

import { errorFromFooter, failure, lossOf } from "./weft-errors.js";
import { Link } from "./weft-link.js";

// What goes up at once: so many datagrams, and bytes around them that are not theirs.
const BATCH_MAX = 256;
const AROUND_BYTES = 512;
const POST_TIMEOUT = 30_000;
const PAUSE = 100;

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

class TunnelLink extends Link {
  #waiting = [];
  #isPosting = false;
  #limit = 0;

  send(ack, text) {
    this.#waiting.push({ ack, text });
    if (!this.#isPosting) this.#post();
  }

  /** By a request of its own: what waits to go up may take long. */
  ping(text) {
    this.said([text], this.ending.signal).catch((error) => {
      if (error.name === "Overloaded") this.stirred();
      else this.close(lossOf(error));
    });
  }

  isMoving() {
    return false;
  }

  largest(welcome) {
    return welcome.body_limit - AROUND_BYTES;
  }

  end() {
    this.listener.returned(this.#waiting.splice(0).map(({ ack }) => ack));
  }

  begun(header) {
    this.#limit = header.welcome.body_limit;
    super.begun(header);
  }

  /**
   * Say datagrams by a request, and resolve with what is known of them if it is refused. It is not
   * ended with the link, unless by the signal: what is on its way may still arrive.
   */
  async said(texts, signal = AbortSignal.timeout(POST_TIMEOUT)) {
    const named = `{"tunnel":${JSON.stringify(this.resume.tunnel)},`;
    const body = `[${texts.map((text) => named + text.slice(1)).join(",")}]`;
    const headers = { "Content-Type": "application/json" };
    await this.fetched(this.address("events"), { method: "POST", headers, body, signal });
  }

  /** Send what waits, a request after the other: they would overtake each other. */
  async #post() {
    this.#isPosting = true;
    while (this.#waiting.length) {
      const batch = this.#batch();
      const acks = batch.map(({ ack }) => ack);
      try {
        await this.said(batch.map(({ text }) => text));
      } catch (error) {
        if (!(await this.#refused(batch, acks, error))) break;
      }
    }
    this.#isPosting = false;
  }

  /** What a refused request means for what it said; whether to go on. */
  async #refused(batch, acks, error) {
    const { at, ok } = error.details ?? {};
    if (error.name === "Overloaded" && ok === at && at >= 0) {
      // From there on nothing was taken, and nothing before it must be said again.
      this.#waiting.unshift(...batch.slice(at));
      await pause(PAUSE);
      if (this.ending.signal.aborted) this.end();
      return true;
    }
    if (error.number < 2000 && at >= 0) {
      this.listener.refused(acks[at], error);
      // Of others that were refused only the tunnel tells, if it can.
      if (ok < batch.length - 1) this.#doubtLater(acks.slice(at + 1));
      return true;
    }
    const lost = failure("ConnectionLost", `what was said did not get through: ${lossOf(error).message}`);
    if (error.name === "NotYours" && ok === 0) this.listener.returned(acks);
    else this.listener.doubted(acks, error.details ? error : lost);
    this.close(lost);
    return false;
  }

  #doubtLater(acks) {
    const unknown = failure("ConnectionLost", "the gateway did not say whether it took this");
    const timer = setTimeout(() => this.listener.doubted(acks, unknown), POST_TIMEOUT);
    // No reason for Node to stay.
    timer.unref?.();
  }

  #batch() {
    let [count, size] = [0, AROUND_BYTES];
    while (count < Math.min(this.#waiting.length, BATCH_MAX)) {
      size += AROUND_BYTES / 4 + 3 * this.#waiting[count].text.length;
      if (count && size > this.#limit) break;
      count += 1;
    }
    return this.#waiting.splice(0, count);
  }
}

export class SseLink extends TunnelLink {
  async begin() {
    const answer = await this.fetched(this.address("tunnel", { format: "sse", ...this.query() }));
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    const events = new EventReader();
    for (;;) {
      const { value, done } = await reader.read();
      if (done) throw failure("ConnectionLost", "the stream ended");
      this.stirred();
      for (const { event, data } of events.read(value)) this.#take(event, JSON.parse(data));
    }
  }

  #take(event, content) {
    if (event === "open") this.begun(content);
    else if (event === "message") this.took(content);
    else if (event === "close") this.close(errorFromFooter(content.close.reason));
  }
}

export class PollLink extends TunnelLink {
  async begin() {
    // Of a poll that was lost before anything came, nobody knows what it told.
    if (!this.resume?.last) this.resume = null;
    if (this.resume) await this.#takeUp();
    while (!this.ending.signal.aborted) {
      const answer = await this.fetched(this.address("tunnel", { format: "poll", ...this.query() }));
      const contents = await answer.json();
      this.stirred();
      for (const content of contents) this.#take(content);
      // Nothing is what comes after a long time, or by mistake again and again.
      if (!contents.length) await pause(PAUSE);
    }
  }

  /** A poll waits until there is something: whether the tunnel is still there is asked apart. */
  async #takeUp() {
    try {
      await this.said([JSON.stringify({ ping: "there?" })]);
    } catch (error) {
      if (error.name !== "NotYours") throw error;
      this.resume = null;
      return;
    }
    this.begun(this.resume);
  }

  #take(content) {
    if (content.welcome) this.begun(content);
    else if (content.close) this.close(failure("ConnectionLost", `the gateway ended the poll: ${content.close.reason}`));
    else this.took(content);
  }
}

/** Server-sent events out of any split of their text. */
export class EventReader {
  #rest = "";
  #event = "";
  #data = [];

  /** The events that are complete with this piece. */
  read(text) {
    const found = [];
    const lines = (this.#rest + text).split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop();
    for (const line of lines) {
      if (line) this.#field(line);
      else this.#end(found);
    }
    return found;
  }

  #field(line) {
    const [, name, value] = /^([^:]*):? ?(.*)$/s.exec(line);
    if (name === "event") this.#event = value;
    else if (name === "data") this.#data.push(value);
  }

  #end(found) {
    if (this.#data.length) found.push({ event: this.#event || "message", data: this.#data.join("\n") });
    this.#event = "";
    this.#data = [];
  }
}
