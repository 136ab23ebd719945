"""Weft's blocking client, with callbacks on its own thread."""

import weft
from benchmarks.peers.clients.driving import (
    SUBJECT,
    Figures,
    Heard,
    Task,
    blocking_flow,
    blocking_requests,
    fields,
)


def run(task: Task) -> Figures:
    """Measure."""
    address = f"127.0.0.1:{task.port}"
    heard = Heard()
    with weft.Connection(address) as subscriber, weft.Connection(address) as publisher:
        if task.case == "request":
            subscriber.subscribe("question", lambda message: message.respond(b"pong"))
            return blocking_requests(lambda: publisher.send_request("question", b"ping"), task)
        subscriber.subscribe(SUBJECT, heard.fields if task.is_typed else heard.message)
        return blocking_flow(publisher.publish, heard, task, fields)
