// What a connection can be told, and what it does if it is not.

import { failure } from "./weft-errors.js";
import { PollLink, SseLink } from "./weft-tunnels.js";
import { WebSocketLink } from "./weft-websocket.js";

// In the order they are tried.
export const TRANSPORTS = { websocket: WebSocketLink, sse: SseLink, poll: PollLink };
// Times in milliseconds, sizes in characters of JSON.
const DEFAULTS = {
  service: "default",
  name: "",
  key: "",
  transports: Object.keys(TRANSPORTS),
  wait: false,
  closest: false,
  region: "",
  timeout: 10_000,
  connectTimeout: 5_000,
  backoffFirst: 100,
  backoffCap: 5_000,
  bufferLimit: 8 << 20,
};

/** The options of a connection to a URL, with what was left out. */
export function checked(url, options) {
  for (const name of Object.keys(options)) {
    if (!(name in DEFAULTS)) throw failure("BadOption", `there is no option ${name}`);
  }
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
  const all = { ...DEFAULTS, ...given, base: baseOf(url) };
  if (typeof all.closest === "string") {
    all.closest = baseOf(all.closest);
    if (all.base.startsWith("https:") && !all.closest.startsWith("https:")) {
      throw failure("BadOption", `closest: ${all.closest} would be asked without TLS for one with it`);
    }
  }
  if (!/^[\w.-]{0,63}$/.test(all.region)) {
    throw failure("BadOption", `region ${String(all.region).slice(0, 64)} is not up to 63 letters, digits, '-', '_' and '.'`);
  }
  for (const name of all.transports) {
    if (!(name in TRANSPORTS)) {
      throw failure("BadOption", `${name} is none of ${Object.keys(TRANSPORTS).join(", ")}`);
    }
  }
  return all;
}

/** The URL of a gateway, without what may follow it. */
function baseOf(url) {
  return new URL(url, globalThis.location?.href).href.replace(/[?#].*$/, "").replace(/\/$/, "");
}
