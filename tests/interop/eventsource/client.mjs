// Prints what a stock EventSource hears at a URL, one JSON object a line.
import { EventSource } from "eventsource";

const [url, key] = process.argv.slice(2);
const withKey = (input, init) =>
  fetch(input, { ...init, headers: { ...init.headers, Authorization: `Bearer ${key}` } });
const source = new EventSource(url, key ? { fetch: withKey } : {});
const tell = (event) => console.log(JSON.stringify(event));

source.onopen = () => tell({ type: "opened" });
source.onerror = (event) => tell({ type: "failed", code: event.code ?? 0 });
for (const type of ["message", "open", "gap", "goodbye"]) {
  source.addEventListener(type, (event) => {
    if (event.data !== undefined) tell({ type, id: event.lastEventId, data: JSON.parse(event.data) });
  });
}
