"""pyzmq: PUB to SUB over loopback without a broker, on one thread, where it is fastest.

Requests are REQ to REP, the responder on a thread of its own.
"""

import json
import threading

import zmq

from benchmarks.peers.clients.driving import (
    SUBJECT,
    Figures,
    Heard,
    Task,
    blocking_flow,
    blocking_requests,
)

_END = b"end"


def run(task: Task) -> Figures:
    """Measure."""
    with zmq.Context() as context:
        return _requests(context, task) if task.case == "request" else _flow(context, task)


def _flow(context: "zmq.Context[zmq.Socket[bytes]]", task: Task) -> Figures:
    heard = Heard()
    callback = (lambda body: heard.fields(json.loads(body))) if task.is_typed else heard.message
    publisher = context.socket(zmq.XPUB)
    publisher.setsockopt(zmq.SNDHWM, 0)
    port = publisher.bind_to_random_port("tcp://127.0.0.1")
    subscriber = context.socket(zmq.SUB)
    subscriber.setsockopt(zmq.RCVHWM, 0)
    subscriber.connect(f"tcp://127.0.0.1:{port}")
    subscriber.subscribe(SUBJECT)
    publisher.recv()  # The subscription has come.
    subject = SUBJECT.encode()
    start = len(subject)

    def listen() -> None:
        try:
            while True:
                callback(subscriber.recv(zmq.NOBLOCK)[start:])
        except zmq.Again:
            return

    try:
        return blocking_flow(
            lambda _, body: publisher.send(subject + body), heard, task, rest=listen
        )
    finally:
        publisher.close(0)
        subscriber.close(0)


def _requests(context: "zmq.Context[zmq.Socket[bytes]]", task: Task) -> Figures:
    responder = context.socket(zmq.REP)
    port = responder.bind_to_random_port("tcp://127.0.0.1")

    def answer() -> None:
        while responder.recv() != _END:
            responder.send(b"pong")
        responder.close(0)

    thread = threading.Thread(target=answer)
    thread.start()
    asking = context.socket(zmq.REQ)
    asking.connect(f"tcp://127.0.0.1:{port}")

    def ask() -> None:
        asking.send(b"ping")
        asking.recv()

    figures = blocking_requests(ask, task)
    asking.send(_END)
    thread.join()
    asking.close(0)
    return figures
