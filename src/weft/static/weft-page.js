// The page that a connection lives in: it is left, it comes back, and so does its network.

/** Calls `left()` when the page is left, and `check()` when it or the network is there again. */
export class PageLife {
  #isGone = false;
  #wake = () => {};
  #watched;

  constructor({ left, check }) {
    const { document } = globalThis;
    const again = () => (check(), this.#wake());
    this.#watched = [
      [globalThis, "pagehide", () => ((this.#isGone = true), left())],
      // Out of the cache of pages that the browser may show again as they were.
      [globalThis, "pageshow", ({ persisted }) => persisted && ((this.#isGone = false), again())],
      [globalThis, "online", again],
      [document, "visibilitychange", () => document.visibilityState === "visible" && again()],
    ];
    for (const [target, event, handler] of this.#watched) target?.addEventListener?.(event, handler);
  }

  /** Wait before the next attempt: not longer if that may succeed now, but as long as the page is gone. */
  async pause(milliseconds) {
    await new Promise((resolve) => {
      const timer = setTimeout(resolve, milliseconds);
      this.#wake = () => (clearTimeout(timer), resolve());
    });
    while (this.#isGone) await new Promise((resolve) => (this.#wake = resolve));
  }

  /** Watch no longer, and wait for nothing. */
  end() {
    for (const [target, event, handler] of this.#watched) target?.removeEventListener?.(event, handler);
    this.#isGone = false;
    this.#wake();
  }
}
