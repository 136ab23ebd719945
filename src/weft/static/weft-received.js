// Which messages a page has received already. A gateway that was cut off from others is sent what it
// missed later; a page that moved there meanwhile may have that from the gateway before.

// As many gateways as a mesh may have.
const ORIGINS_MAX = 4096;

export class Received {
  // Last sequence by origin, the most recent origin at the end; and what it was at the last resume().
  #last = new Map();
  #before = new Map();

  /** A new conversation begins, perhaps with another gateway. */
  resume() {
    this.#before = new Map(this.#last);
  }

  /** Note a message by its id; return whether it came in an earlier conversation. */
  isRepeated(id) {
    const [, origin, digits] = /^(\d+)\.(\d+)$/.exec(id) ?? [];
    const sequence = Number(digits);
    // Others are numbered by their publishers, or not at all.
    if (!(sequence > 0 && Number.isSafeInteger(sequence))) return false;
    if (sequence <= (this.#before.get(origin) ?? 0)) return true;
    const last = this.#last.get(origin) ?? 0;
    this.#last.delete(origin);
    this.#last.set(origin, Math.max(last, sequence));
    if (this.#last.size > ORIGINS_MAX) this.#last.delete(this.#last.keys().next().value);
    return false;
  }
}
