// A stock Bayeux client that does what the lines on its input say, and says what happens to it.
//
//     node client.mjs LIBRARY TRANSPORT URL OPTIONS
//
// A line in is {"do": "subscribe", "channel": "/a/*"} and the like, one out {"event": …, …}.

import http from "node:http";
import readline from "node:readline";
import vm from "node:vm";

import { AckExtension, BinaryExtension, CometD, TimeSyncExtension } from "cometd";
import { adapt } from "cometd-nodejs-client";
import faye from "faye";

const [library, transport, url, optionsText] = process.argv.slice(2);
const options = JSON.parse(optionsText ?? "{}");

function tell(event, facts = {}) {
  process.stdout.write(JSON.stringify({ event, ...facts }) + "\n");
}

// As much of a browser as it takes to run scripts from elsewhere.
function browse() {
  const head = {
    appendChild(script) {
      http
        .get(script.src, (response) => {
          let text = "";
          response.setEncoding("utf8");
          response.on("data", (chunk) => (text += chunk));
          response.on("end", () => {
            if (response.statusCode === 200) {
              vm.runInNewContext(text, globalThis.window);
            } else {
              script.onerror({ type: `status ${response.statusCode}` });
            }
          });
        })
        .on("error", () => script.onerror({ type: "error" }));
    },
    removeChild() {},
  };
  globalThis.window.document = {
    getElementsByTagName: () => [head],
    createElement: () => ({}),
  };
}

function cometd() {
  adapt();
  browse();
  const client = new CometD();
  for (const each of ["websocket", "long-polling", "callback-polling"]) {
    if (each !== transport) client.unregisterTransport(each);
  }
  if (options.ack) client.registerExtension("ack", new AckExtension());
  const times = new TimeSyncExtension();
  if (options.times) client.registerExtension("timesync", times);
  if (options.binary) client.registerExtension("binary", new BinaryExtension());
  client.configure({
    url,
    logLevel: "warn",
    backoffIncrement: 100,
    maxBackoff: 300,
    requestHeaders: options.headers ?? {},
  });
  const told = (message) => {
    const { data } = message;
    if (message.ext?.binary) data.data = [...new Uint8Array(data.data)];
    tell("message", { channel: message.channel, data });
  };
  const subscriptions = new Map();
  const answered = (event) => (answer) =>
    tell(event, { successful: answer.successful, error: answer.error, channel: answer.channel });
  client.addListener("/meta/handshake", (message) =>
    tell("handshake", {
      successful: message.successful,
      again: message.reestablish === true,
      error: message.error,
      advice: message.advice,
    }),
  );
  client.addListener("/meta/connect", (message) =>
    tell("connect", {
      successful: message.successful,
      by: client.getTransport()?.type,
      ack: message.ext?.ack,
      times: message.ext?.timesync,
    }),
  );
  // Listeners are kept over a new handshake; subscriptions are for the application to renew.
  client.addListener("/meta/handshake", (message) => {
    if (message.successful && message.reestablish) {
      for (const channel of subscriptions.keys()) {
        subscriptions.set(channel, client.subscribe(channel, told, answered("subscribed")));
      }
    }
  });
  client.handshake(options.handshake ?? {});
  return {
    subscribe: (channel) =>
      subscriptions.set(channel, client.subscribe(channel, told, answered("subscribed"))),
    unsubscribe: (channel) => {
      client.unsubscribe(subscriptions.get(channel), answered("unsubscribed"));
      subscriptions.delete(channel);
    },
    publish: (channel, data) => client.publish(channel, data, answered("published")),
    publishBinary: (channel, { bytes, last, meta }) =>
      client.publishBinary(channel, new Uint8Array(bytes), last, meta, answered("published")),
    times: () => tell("times", { lag: times.getNetworkLag(), offset: times.getTimeOffset() }),
    batch: (channel, data) =>
      client.batch(() => {
        for (const each of data) client.publish(channel, each, answered("published"));
      }),
    disconnect: () => client.disconnect(answered("disconnected")),
  };
}

function fayes() {
  const client = new faye.Client(url, { timeout: 60, retry: 0.3 });
  // It shakes hands by long-polling whatever it connects by.
  if (transport !== "websocket") client.disable("websocket");
  let connectedBy;
  for (const [name, value] of Object.entries(options.headers ?? {})) client.setHeader(name, value);
  client.addExtension({
    incoming(message, callback) {
      if (message.channel === "/meta/handshake") {
        tell("handshake", {
          successful: message.successful,
          error: message.error,
          advice: message.advice,
        });
      } else if (message.channel === "/meta/connect") {
        tell("connect", { successful: message.successful, by: connectedBy });
      }
      callback(message);
    },
    outgoing(message, callback) {
      if (message.channel === "/meta/handshake") Object.assign(message, options.handshake ?? {});
      if (message.channel === "/meta/connect") connectedBy = message.connectionType;
      callback(message);
    },
  });
  const subscriptions = new Map();
  const answered = (event, channel) => [
    () => tell(event, { successful: true, channel }),
    (error) =>
      tell(event, { successful: false, channel, code: error.code, error: error.message }),
  ];
  client.connect();
  return {
    subscribe: (channel) => {
      const made = client.subscribe(channel).withChannel((at, data) => {
        tell("message", { channel: at, data });
      });
      made.then(...answered("subscribed", channel));
      subscriptions.set(channel, made);
    },
    unsubscribe: (channel) => {
      subscriptions.get(channel).cancel();
      tell("unsubscribed", { successful: true, channel });
    },
    publish: (channel, data) =>
      client.publish(channel, data).then(...answered("published", channel)),
    batch: (channel, data) => {
      for (const each of data) client.publish(channel, each).then(...answered("published", channel));
    },
    disconnect: () => client.disconnect().then(...answered("disconnected", "/meta/disconnect")),
  };
}

const client = library === "cometd" ? cometd() : fayes();

readline
  .createInterface({ input: process.stdin })
  .on("line", (line) => {
    const wish = JSON.parse(line);
    client[wish.do](wish.channel, wish.data);
  })
  .on("close", () => process.exit(0));
