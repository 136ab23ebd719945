// A WebSocket to a gateway: datagrams as text, one in each message, up and down.

import { errorFromClose, failure, lossOf } from "./weft-errors.js";
import { Link } from "./weft-link.js";

// Closed with the first, the tunnel is over; with the other it is kept for who comes back.
const DONE = 1000;
const BACK_SOON = 4000;

export class WebSocketLink extends Link {
  #socket = null;
  #unsent = 0;

  async begin() {
    if (!globalThis.WebSocket) throw failure("Unreachable", "there is no WebSocket here");
    const url = this.address("ws", { ...this.query(), ticket: await this.#ticket() });
    if (this.ending.signal.aborted) return;
    url.protocol = url.protocol.replace("http", "ws");
    const socket = (this.#socket = new WebSocket(url, "weft.json"));
    socket.onmessage = ({ data }) => this.#take(JSON.parse(data));
    socket.onclose = ({ code, reason }) => this.#closed(errorFromClose(code, reason), code);
    // Of one that never was open some engines tell no more than this.
    socket.onerror = () => this.isOpen || this.#closed();
  }

  send(ack, text) {
    if (ack) this.resume.unanswered.add(ack);
    this.#socket.send(text);
  }

  ping(text) {
    this.send(0, text);
  }

  isMoving() {
    const before = this.#unsent;
    this.#unsent = this.#socket.bufferedAmount;
    return this.#unsent < before;
  }

  largest(welcome) {
    return 2 * welcome.body_limit;
  }

  end() {
    if (!this.#socket) return;
    this.#socket.onmessage = this.#socket.onclose = this.#socket.onerror = null;
    // Whoever leaves has nothing to come back to.
    this.hasTakenLeave = !this.resume && this.#socket.readyState === WebSocket.OPEN;
    this.#socket.close(this.resume ? BACK_SOON : DONE);
  }

  /** It is closed; why a handshake was refused no browser tells, but an answer by HTTP does. */
  async #closed(error, code = 0) {
    if (this.isOpen || code >= 4000) return this.close(error);
    this.#socket.onclose = this.#socket.onerror = null;
    try {
      if (!this.options.key) await this.fetched(this.address("ticket"), { method: "POST" });
    } catch (refused) {
      if (!lossOf(refused).isPassing) return this.close(refused);
    }
    this.close(failure("Unreachable", "no WebSocket could be opened"));
  }

  /** What lets a page in where it cannot show its key. */
  async #ticket() {
    if (!this.options.key) return "";
    const answer = await this.fetched(this.address("ticket"), { method: "POST" });
    return (await answer.json()).ticket;
  }

  #take(datagram) {
    if (datagram.welcome) this.begun(datagram);
    else this.took(datagram);
  }
}
