// A message and the way back to whoever awaits an answer to it.

/** One message, as handlers and requesters get it. */
export class Message {
  #respond;

  constructor({ id, path, data, reply = "", request = false }, respond) {
    Object.assign(this, { id, path, data, reply, isRequest: request });
    this.#respond = respond;
  }

  /** Answer it; resolves when the gateway has taken the answer. */
  respond(data) {
    return this.#respond(this, data);
  }
}
