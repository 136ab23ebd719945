// A WebSocket to a gateway: datagrams as text, one in each message. It cannot be taken up again.

import { errorFromClose, failure } from "./weft-errors.js";
import { Link } from "./weft-link.js";

export class WebSocketLink extends Link {
  #socket = null;

  async begin() {
    if (!globalThis.WebSocket) throw failure("Unreachable", "there is no WebSocket here");
    const url = this.address("ws", { name: this.options.name, ticket: await this.#ticket() });
    if (this.ending.signal.aborted) return;
    url.protocol = url.protocol.replace("http", "ws");
    const socket = (this.#socket = new WebSocket(url, "weft.json"));
    socket.onmessage = ({ data }) => this.#take(JSON.parse(data));
    socket.onclose = ({ code, reason }) => this.close(errorFromClose(code, reason));
    // Of one that never was open some engines tell no more than this.
    socket.onerror = () => this.isOpen || this.close(failure("Unreachable", "no WebSocket could be opened"));
  }

  send(_ack, text) {
    this.#socket.send(text);
  }

  largest(welcome) {
    return 2 * welcome.body_limit;
  }

  end() {
    if (!this.#socket) return;
    this.#socket.onmessage = this.#socket.onclose = this.#socket.onerror = null;
    this.#socket.close();
  }

  /** What lets a page in where it cannot show its key. */
  async #ticket() {
    if (!this.options.key) return "";
    const answer = await this.fetched(this.address("ticket"), { method: "POST" });
    return (await answer.json()).ticket;
  }

  #take(datagram) {
    if (datagram.welcome) this.opened(datagram.welcome, false);
    else this.heard(datagram);
  }
}
