// What goes wrong: a number, a name and a sentence, as on the wire. docs/protocol.md has the table.
//
// The thousands say who must act: 1xxx fix the call, 2xxx report a bug, 3xxx try again, 4xxx do not.

const NAMES = {
  1000: "UsageError", 1001: "BadSubject", 1002: "BadField", 1003: "NoSuchField", 1004: "WrongType",
  1005: "BadOption", 1006: "NotOpen",
  2000: "ProtocolError", 2001: "BadFrame", 2002: "FrameTooBig", 2003: "BadMessage",
  2004: "MessageTooBig", 2005: "BadGreeting", 2006: "UnexpectedFrame", 2007: "TooSlow",
  2008: "ControlFlood",
  3000: "ConnectionLost", 3001: "Unreachable", 3002: "TimedOut", 3003: "ResponderGone",
  3004: "Draining", 3005: "SlowReader", 3006: "Silent", 3007: "Overloaded", 3008: "InternalError",
  3009: "JournalFailed", 3012: "ClosedByAdmin", 3013: "NoMajority", 3014: "ChannelContested",
  3015: "TooManyTries",
  3016: "NotDirect",
  4000: "Refused", 4001: "NotKnown", 4002: "Reserved", 4003: "NotYours", 4004: "NoSuchService",
  4005: "TooMany", 4006: "BadKey", 4007: "NotAllowed", 4013: "ChannelExists", 4014: "WrongPassword",
  4015: "ChannelLost", 4016: "ChannelClosed", 4017: "NotAMember",
  4018: "RequestFailed",
};
const NUMBERS = Object.fromEntries(Object.entries(NAMES).map(([number, name]) => [name, +number]));

/** Everything that weft.js rejects with; `name` and `number` say what it is. */
export class WeftError extends Error {
  constructor(number, text, name = NAMES[number] ?? NAMES[Math.floor(number / 1000) * 1000]) {
    super(text);
    this.name = name ?? "WeftError";
    this.number = number;
  }

  /** Whether to try again may help. */
  get isPassing() {
    return this.number >= 3000 && this.number < 4000;
  }
}

/** An error by its name. */
export function failure(name, text) {
  return new WeftError(NUMBERS[name], text, name);
}

/** Refuse options that are none of these, as a misspelled one would be. */
export function refuseUnknown(options, known) {
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) throw failure("BadOption", `there is no option ${name}: there are ${known.join(", ")}`);
  }
}

/** The error that ended a stream, by what its footer gives as the reason. */
export function errorFromFooter(reason) {
  const text = `the gateway ended the stream: ${reason}`;
  return failure(reason in NUMBERS ? reason : "ConnectionLost", text);
}

/** The error that a datagram or the body of an answer tells of. */
export function errorFromWire({ number, name, text }) {
  return new WeftError(number, text, name);
}

/** Why a WebSocket was closed: 4000–4499 and the standard's codes to come back, 4500–4999 not. */
export function errorFromClose(code, text) {
  if (code < 4000 || code > 4999) {
    return failure("ConnectionLost", text || `the connection ended with code ${code}`);
  }
  const offset = code % 500;
  const number = 1000 * (1 + Math.floor(offset / 100)) + (offset % 100);
  const isPassing = code < 4500;
  const known = new WeftError(number, text || `the gateway ended the connection: ${code}`);
  // What the code says about coming back counts, whatever number a later gateway puts into it.
  return known.isPassing === isPassing ? known : failure(isPassing ? "ConnectionLost" : "Refused", known.message);
}

/** The error that an HTTP answer stands for. */
export async function errorFromAnswer(answer) {
  const text = await answer.text().catch(() => "");
  try {
    const details = JSON.parse(text);
    // One that did not arrive whole in time may the next time.
    if (answer.status !== 408) return Object.assign(errorFromWire(details.error), { details });
  } catch {
    // By something in between that another transport may get around.
  }
  return failure("Unreachable", `the answer was ${answer.status} ${text.trim().slice(0, 200)}`.trim());
}

/** An error that is not ours means that the network failed, or that what came was no JSON. */
export function lossOf(error) {
  const cause = error.cause ? `: ${error.cause.message}` : "";
  return error.number ? error : failure("Unreachable", `${error.message}${cause}`);
}
