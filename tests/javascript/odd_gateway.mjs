// A gateway's tunnel door that does, on request, what a real one does too seldom to wait for.

import http from "node:http";

const WELCOME = { service: "default", name: "n", gateway: "odd", inbox: "/_INBOX/1", body_limit: 1 << 20, ping_s: 30 };

export class OddGateway {
  #server;
  #stream = null;
  #told = [];
  // What was said, in the order it was taken.
  taken = [];
  attached = [];
  // Answers that are given instead of taking a request: functions of its datagrams.
  instead = [];

  static async open(tunnel = "T") {
    const gateway = new OddGateway();
    gateway.tunnel = tunnel;
    gateway.#server = http.createServer((request, response) => gateway.#answer(request, response));
    await new Promise((resolve) => gateway.#server.listen(0, "127.0.0.1", resolve));
    gateway.url = `http://127.0.0.1:${gateway.#server.address().port}`;
    return gateway;
  }

  close() {
    this.#server.closeAllConnections();
    return new Promise((resolve) => this.#server.close(resolve));
  }

  /** Tell a datagram, which is kept and told again to whoever comes back. */
  tell(datagram) {
    this.#told.push({ id: `t.${this.#told.length + 1}`, path: "/_INBOX/1/tunnel", ...datagram });
    this.#stream?.write(eventOf(this.#told.at(-1)));
  }

  /** End the stream with a footer. */
  end(reason) {
    this.#stream.end(`event: close\ndata: ${JSON.stringify({ close: { reason } })}\n\n`);
  }

  cut() {
    this.#stream.destroy();
  }

  async #answer(request, response) {
    const url = new URL(request.url, this.url);
    if (url.pathname === "/default/tunnel") {
      this.attached.push(url.searchParams.get("last"));
      this.#stream = response.writeHead(200, { "Content-Type": "text/event-stream" });
      response.write(`event: open\ndata: ${JSON.stringify({ tunnel: this.tunnel, welcome: WELCOME })}\n\n`);
      // Whatever was received, all of it: a real one repeats less.
      this.#told.forEach((datagram) => response.write(eventOf(datagram)));
      return;
    }
    let body = "";
    for await (const piece of request) body += piece;
    const datagrams = [JSON.parse(body)].flat();
    const [status, said, count] = this.instead.shift()?.(datagrams) ?? [202, {}, datagrams.length];
    for (const datagram of datagrams.slice(0, count)) {
      this.taken.push(datagram.data);
      this.tell({ ok: datagram.ack, published: `7.${this.taken.length}` });
    }
    response.writeHead(status).end(JSON.stringify(said));
  }
}

function eventOf(datagram) {
  return `id: ${datagram.id}\ndata: ${JSON.stringify(datagram)}\n\n`;
}
