// A TCP proxy that a test puts before a gateway, to cut and to hold up what passes through it.

import net from "node:net";

export class CuttingProxy {
  #server;
  #pairs = new Set();
  #isDead = false;
  #stalled = new Set();
  #isHeld = false;
  #isDownHeld = false;

  // How many came.
  accepted = 0;

  /** A proxy before the gateway at a URL; what passes it takes so many milliseconds longer, each way. */
  static async before(url, delay = 0) {
    const proxy = new CuttingProxy();
    proxy.delay = delay;
    proxy.leadTo(url);
    proxy.#server = net.createServer((socket) => proxy.#take(socket));
    await new Promise((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    proxy.url = `http://127.0.0.1:${proxy.#server.address().port}`;
    return proxy;
  }

  /** Lead new connections to another gateway, or, with null, nowhere. */
  leadTo(url) {
    this.target = url && new URL(url);
  }

  /** Cut every connection, without a word. */
  cut() {
    for (const [near, far] of this.#pairs) {
      near.resetAndDestroy();
      far.destroy();
    }
    this.#isHeld = this.#isDownHeld = false;
  }

  /** Let nothing more pass, in either direction, until the cut. */
  hold() {
    this.#isHeld = true;
    for (const pair of this.#pairs) pair.forEach((socket) => socket.pause());
  }

  /** Swallow what passes on all connections, their ends included: the network is dead. */
  stall() {
    this.#isDead = true;
    for (const pair of this.#pairs) this.#stalled.add(pair);
  }

  /** Let through what new connections say; those that there were stay dead. */
  revive() {
    this.#isDead = false;
  }

  /** Let nothing more pass that the gateway says, until the cut. */
  holdDown() {
    this.#isDownHeld = true;
  }

  close() {
    this.cut();
    return new Promise((resolve) => this.#server.close(resolve));
  }

  #take(near) {
    near.on("error", () => {});
    if (!this.target) {
      near.destroy();
      return;
    }
    this.accepted += 1;
    const far = net.connect(this.target.port, this.target.hostname);
    const pair = [near, far];
    this.#pairs.add(pair);
    if (this.#isDead) this.#stalled.add(pair);
    far.on("error", () => {});
    for (const [from, to] of [pair, [far, near]]) {
      const isDead = () => this.#stalled.has(pair);
      const isStopped = () => isDead() || this.#isHeld || (this.#isDownHeld && from === far);
      const later = (act) => (this.delay ? setTimeout(act, this.delay) : act());
      from.on("data", (data) => isStopped() || later(() => to.write(data)));
      from.on("close", () => isDead() || later(() => (to.destroy(), this.#pairs.delete(pair))));
    }
  }
}
