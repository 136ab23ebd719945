// Who on a page is told what happens to a connection.

import { failure } from "./weft-errors.js";

const EVENTS = ["status", "gap", "error"];

export class Listeners {
  #byEvent = new Map();

  /** Call a handler on every such event; what is returned takes that back. */
  on(event, handler) {
    if (!EVENTS.includes(event)) throw failure("BadOption", `there is no event ${event}`);
    const handlers = this.#byEvent.get(event) ?? new Set();
    this.#byEvent.set(event, handlers.add(handler));
    return () => handlers.delete(handler);
  }

  tell(event, value) {
    const handlers = [...(this.#byEvent.get(event) ?? [])];
    if (event === "error" && !handlers.length) console.error("weft:", value);
    for (const handler of handlers) this.call(handler, value);
  }

  /** A handler that fails is reported, and the next is called; say if it did not fail. */
  async call(handler, value) {
    try {
      await handler(value);
      return true;
    } catch (error) {
      if (this.#byEvent.get("error")?.has(handler)) console.error("weft:", error);
      else this.tell("error", error);
      return false;
    }
  }
}
