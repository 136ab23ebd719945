import { connect, type Connection } from "./weft.js";

interface Quote {
  symbol: string;
  bid?: number;
  levels: { price: number; size: number }[];
}

class Order {
  constructor(readonly id: number) {}
}

export async function use(quote: Quote): Promise<void> {
  const weft: Connection = await connect("http://127.0.0.1:7411", { heartbeat: 5000 });
  await weft.publish("/quotes", quote);
  await weft.publish("/orders", new Order(1));
  await weft.publish("/bytes", new Uint8Array(3));
  await weft.publish("/bytes", new ArrayBuffer(3));
  await weft.publish("/numbers", [1, "two", null, { three: 3 }]);
  const answer = await weft.request<Quote>("/quotes/get", quote);
  const bid: number | undefined = answer.data.bid;
  await weft.subscribe<Quote>("/quotes", (message) => message.respond(message.data), { subpaths: true });
  const room = await weft.openChannel("room");
  await room.publish("/quotes", quote);
  await room.request("/quotes", { bid });
  // @ts-expect-error
  await weft.publish("/big", 1n);
  // @ts-expect-error
  await weft.subscribe("/quotes", () => {}, { subpath: true });
  // @ts-expect-error
  await connect("http://127.0.0.1:7411", { servise: "chat" });
}
