// The types of weft.js. Times are in milliseconds.

/** What JSON can say; `{ $blob: "aGVsbG8=" }` is bytes, `{ $timestamp: "…Z" }` a time. */
export type Json = string | number | boolean | null | Json[] | { [name: string]: Json };

/**
 * What can be sent: anything that JSON can say, interfaces and classes too, and bytes as `Uint8Array`,
 * `ArrayBuffer` or `DataView`. What JSON cannot say, like a `Map` in it, is refused with `BadField`.
 */
export type Data = string | number | boolean | null | object;

export type Transport = "websocket" | "sse" | "poll";

export interface ConnectOptions {
  /** The namespace; the same path in two services never mixes. "default" if left out. */
  service?: string;
  /** What the page calls itself, like "me.1"; the gateway chooses one if left out. */
  name?: string;
  /** A key; it is shown in a header, never in a URL. */
  key?: string;
  /** The ways to try, in their order: ["websocket", "sse", "poll"]. */
  transports?: Transport[];
  /** Wait for ever for the first connection, instead of giving up at once: false. */
  wait?: boolean;
  /** Ask for the closest gateway: true the given one, a URL that one. The given one is for when that fails. */
  closest?: boolean | string;
  /** Where this is, in the words of the gateways: a first guess for the closest. */
  region?: string;
  /** How long a request waits: 10000. */
  timeout?: number;
  /** How long one transport may take to open: 5000. */
  connectTimeout?: number;
  /** After how much silence the gateway is asked for a sign, and how long that may take: 10000. */
  heartbeat?: number;
  /** The first and the longest pause between attempts: 100 and 5000. */
  backoffFirst?: number;
  backoffCap?: number;
  /** How many characters of JSON may wait to be taken by the gateway: 8388608. */
  bufferLimit?: number;
}

export interface PublishOptions {
  /** A path that answers are awaited at. */
  reply?: string;
  /** Not to this connection itself. */
  notBack?: boolean;
  /** Nobody who gets it sees the reply or who sent it, but a stand-in. */
  masked?: boolean;
  /** Say it again if the connection is lost before the gateway answered: it may then arrive twice. */
  resend?: boolean;
  /** Give up after so long; 0, the default, never does. */
  timeout?: number;
}

export interface RequestOptions {
  timeout?: number;
  /** Whoever answers does not learn whom. */
  masked?: boolean;
  /** Ask again if the connection is lost before an answer came: it may then be carried out twice. */
  resend?: boolean;
}

export interface SubscribeOptions {
  /** Everything below the path as well. */
  subpaths?: boolean;
  /** A queue group: one of its members gets each message. */
  group?: string;
  /** What the gateway does when this reader falls behind; "cut" if left out. */
  policy?: "cut" | "drop_new" | "drop_old" | "latest";
  /** Never be chosen to answer a request. */
  listenOnly?: boolean;
}

export interface Message<Content = any> {
  /** What the message is known by everywhere, like "7.42". */
  readonly id: string;
  readonly path: string;
  readonly data: Content;
  /** Where an answer is awaited, or "". */
  readonly reply: string;
  /** Whether an answer is awaited from this connection alone. */
  readonly isRequest: boolean;
  /** Whether it is the gateway's own answer to a request below "/_WEFT/ask/". */
  readonly isFromGateway: boolean;
  /** Answer it; resolves with the id of the answer when the gateway has taken it. */
  respond(data?: Data): Promise<string>;
  /** Answer that it could not be done, and why; the request rejects with `RequestFailed`. */
  respondError(text: string): Promise<string>;
}

export interface Subscription {
  readonly path: string;
  readonly subpaths: boolean;
  readonly group: string;
  readonly isOpen: boolean;
  /** End it; resolves when the gateway has taken it back. */
  close(): Promise<void>;
}

export interface ChannelOptions {
  /** What those who know it can join with; it is never sent, nor kept. None if left out, and "" is an error. */
  password?: string;
}

/** A channel that a connection is in; after a loss it is joined again by itself. */
export interface Channel {
  readonly name: string;
  /** Which channel of this name it is; another one, perhaps, after the connection was lost. */
  readonly id: string;
  readonly isProtected: boolean;
  readonly isOpen: boolean;
  /** Why it ended, if that was not our own wish. */
  readonly error: WeftError | null;
  /** The gateways that did not answer when it was opened here. */
  readonly silent: string[];
  /** Called with the reason when it ends against our will; without it, that is an "error" of the connection. */
  onlost: ((error: WeftError) => unknown) | null;
  /** Say something to everybody in it; paths begin with / and are the channel's own. */
  publish(path: string, data?: Data, options?: PublishOptions): Promise<string>;
  /** Ask one of those who are in it. */
  request<Answer = any>(path: string, data?: Data, options?: RequestOptions): Promise<Message<Answer>>;
  /** Hear what is said to a path, or with "/>" everything. */
  subscribe<Content = any>(
    path: string,
    handler: (message: Message<Content>) => unknown,
    options?: SubscribeOptions,
  ): Promise<ChannelSubscription>;
  /** The path of a message as it is said within the channel. */
  pathOf(message: Message): string;
  /** Be in it no more. */
  leave(): Promise<void>;
  /** End it for everybody, which takes whoever opened it, a service or an admin. */
  close(): Promise<void>;
}

export interface ChannelSubscription {
  readonly path: string;
  readonly isOpen: boolean;
  /** End it; resolves when the gateway has taken it back. */
  close(): Promise<void>;
}

export type Status =
  | { state: "connecting" }
  /** With `isResumed` it goes on where it was cut: what was missed comes, unless a gap tells otherwise. */
  | { state: "connected"; transport: Transport; isResumed: boolean; /** Which gateway was taken. */ url: string; why: string }
  | { state: "reconnecting"; reason: WeftError; attempt: number }
  | { state: "closed"; error?: WeftError };

/** Messages that will not come; `count` is null where nobody can know. */
export interface Gap {
  reason: string;
  count: number | null;
}

export interface Welcome {
  service: string;
  name: string;
  gateway: string;
  inbox: string;
  body_limit: number;
  ping_s: number;
  [fact: string]: unknown;
}

/** What everything is rejected with: a name and a number as in docs/protocol.md. */
export class WeftError extends Error {
  readonly number: number;
  /** Whether to try again may help. */
  readonly isPassing: boolean;
}

export interface Connection {
  /** What the gateway said of itself when the conversation began. */
  readonly welcome: Welcome;
  readonly status: Status;
  /** Resolves with the id of the message when the gateway has taken it. */
  publish(path: string, data?: Data, options?: PublishOptions): Promise<string>;
  /** Ask one subscriber; resolves with its answer. */
  request<Answer = any>(path: string, data?: Data, options?: RequestOptions): Promise<Message<Answer>>;
  /** Resolves when the gateway has confirmed it. */
  subscribe<Content = any>(
    path: string,
    handler: (message: Message<Content>) => unknown,
    options?: SubscribeOptions,
  ): Promise<Subscription>;
  /** Open a channel, with a password or without, and be in it. */
  openChannel(name: string, options?: ChannelOptions): Promise<Channel>;
  /** Be in a channel that somebody opened. */
  joinChannel(name: string, options?: ChannelOptions): Promise<Channel>;
  /** What is returned takes the handler away again. */
  on(event: "status", handler: (status: Status) => unknown): () => void;
  on(event: "gap", handler: (gap: Gap) => unknown): () => void;
  on(event: "error", handler: (error: Error) => unknown): () => void;
  /** Wait a moment for what was said to be taken, and leave. */
  close(): Promise<void>;
}

/** Connect to a gateway, like "http://127.0.0.1:7411"; resolves once it has said welcome. */
export function connect(url: string, options?: ConnectOptions): Promise<Connection>;
