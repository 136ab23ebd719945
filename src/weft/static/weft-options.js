// What a connection can be told, and what it does if it is not.

import { failure, refuseUnknown } from "./weft-errors.js";
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
  heartbeat: 10_000,
  backoffFirst: 100,
  backoffCap: 5_000,
  bufferLimit: 8 << 20,
};

/** What may be told with a message, and with a request. */
export const PUBLISH_OPTIONS = ["reply", "notBack", "masked", "resend", "timeout"];
export const REQUEST_OPTIONS = ["masked", "resend", "timeout"];

/** The options of a connection to a URL, with what was left out. */
export function checked(url, options) {
  refuseUnknown(options, Object.keys(DEFAULTS));
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
  const shown = String(url).slice(0, 200);
  // Without a scheme a page would take it for a path of its own.
  if (/^([\w.-]+|\[[\da-f:.]+\]):\d+([/?#]|$)/i.test(shown)) {
    throw failure("BadOption", `url ${shown} has no scheme: http://${shown}, or https://${shown}`);
  }
  let parsed;
  try {
    parsed = new URL(url, globalThis.location?.href);
  } catch {
    throw failure("BadOption", `url ${shown} is not an address like http://127.0.0.1:7411`);
  }
  if (!/^https?:$/.test(parsed.protocol)) {
    throw failure("BadOption", `url ${shown} begins with ${parsed.protocol}, and must with http: or https:`);
  }
  return parsed.href.replace(/[?#].*$/, "").replace(/\/$/, "");
}
