// Who on a page wants which messages. A connection gets a message once, however many of its
// subscriptions match, so which of them it is for is found out here.

import { failure, refuseUnknown } from "./weft-errors.js";

const OPTIONS = ["subpaths", "group", "policy", "listenOnly"];

/** One handler and what it wants; made by `subscribe`, ended by `close`. */
export class Subscription {
  #end;

  constructor(path, handler, options, end) {
    refuseUnknown(options, OPTIONS);
    this.path = path;
    this.subpaths = Boolean(options.subpaths);
    this.group = options.group ?? "";
    this.isOpen = true;
    this.handler = handler;
    this.patterns = this.subpaths ? [path, `${path}/>`] : [path];
    this.options = { policy: options.policy ?? "", listenOnly: Boolean(options.listenOnly) };
    this.matchers = this.patterns.map(matcher);
    this.#end = end;
  }

  matches(path) {
    return this.matchers.some((each) => each.test(path));
  }

  /** End it; resolves when the gateway has taken it back. */
  close() {
    return this.#end(this);
  }
}

/** A pattern that the gateway is asked for, as long as one or more subscriptions want it. */
class Interest {
  count = 0;
  isConfirmed = false;

  constructor(key, pattern, { group, options }) {
    Object.assign(this, { key, pattern, group, ...options });
    this.ready = new Promise((resolve, reject) => {
      this.confirm = () => ((this.isConfirmed = true), resolve());
      this.refuse = reject;
    });
    // It may be refused when nobody waits for it.
    this.ready.catch(() => {});
  }

  /** The datagram that asks for it. */
  get head() {
    return {
      interest: this.pattern,
      ...(this.group && { group: this.group }),
      ...(this.policy && { policy: this.policy }),
      ...(this.listenOnly && { listen_only: true }),
    };
  }

  isOf(subscription) {
    return subscription.group === this.group && subscription.patterns.includes(this.pattern);
  }
}

/** All subscriptions of a connection, and the interests that stand for them at the gateway. */
export class Subscriptions {
  #all = new Set();
  // By pattern and group: how many subscriptions share an interest.
  #interests = new Map();
  #turn = 0;

  get isEmpty() {
    return this.#all.size === 0;
  }

  /** The interests that the gateway must know of. */
  get interests() {
    return [...this.#interests.values()];
  }

  [Symbol.iterator]() {
    return [...this.#all][Symbol.iterator]();
  }

  /** Take one in; the interests that it waits for. */
  add(subscription) {
    this.#refuseConflict(subscription);
    this.#all.add(subscription);
    return subscription.patterns.map((pattern) => {
      const key = keyOf(pattern, subscription.group);
      const interest = this.#interests.get(key) ?? new Interest(key, pattern, subscription);
      interest.count += 1;
      this.#interests.set(key, interest);
      return interest;
    });
  }

  /** Let one go; the interests that nobody has any more. */
  remove(subscription) {
    if (!this.#all.delete(subscription)) return [];
    return subscription.patterns
      .map((pattern) => this.#interests.get(keyOf(pattern, subscription.group)))
      .filter((interest) => (interest.count -= 1) === 0 && this.#interests.delete(interest.key));
  }

  /** The subscriptions that a message is for: all that match, but one of a group or for a request. */
  receivers(path, isRequest) {
    const matching = [...this.#all].filter((each) => each.matches(path));
    if (!isRequest && !matching.some((each) => each.group)) return matching;
    const able = isRequest ? matching.filter((each) => !each.options.listenOnly) : matching;
    return able.length > 1 ? [able[this.#turn++ % able.length]] : able;
  }

  #refuseConflict(added) {
    for (const other of this.#all) {
      const shared = other.patterns.some((a) => added.patterns.some((b) => overlap(a, b)));
      if (shared && other.group !== added.group) {
        throw failure("BadOption", `${added.path} and ${other.path} overlap, so they must be of one group, or of none`);
      }
      const isSame = other.patterns.some((each) => added.patterns.includes(each));
      const agrees =
        other.options.policy === added.options.policy && other.options.listenOnly === added.options.listenOnly;
      if (isSame && !agrees) {
        throw failure("BadOption", `two subscriptions to ${added.path} must agree on policy and listenOnly`);
      }
    }
  }
}

/** What tests if a path is what a pattern stands for. */
export function matcher(pattern) {
  const elements = pattern.split("/").slice(1).map((element, at) => {
    // A wildcard in the first place does not stand for what belongs to the system.
    const guard = at === 0 ? "(?!_)" : "";
    if (element === "*") return `${guard}[^/]+`;
    if (element === ">") return `${guard}.+`;
    return element.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
  });
  return new RegExp(`^/${elements.join("/")}$`, "su");
}

/** Whether some path is what both patterns stand for. */
export function overlap(a, b) {
  const [left, right] = [a.split("/"), b.split("/")];
  for (let at = 1; ; at += 1) {
    if (at >= left.length || at >= right.length) return left.length === right.length;
    if (left[at] === ">" || right[at] === ">") return !isSystem(at, left[at], right[at]);
    if (left[at] !== right[at] && left[at] !== "*" && right[at] !== "*") return false;
    if (left[at] !== right[at] && isSystem(at, left[at], right[at])) return false;
  }
}

/** The first element belongs to the system, which no wildcard stands for. */
function isSystem(at, ...elements) {
  return at === 1 && elements.some((each) => each.startsWith("_"));
}

function keyOf(pattern, group) {
  return `${group} ${pattern}`;
}
