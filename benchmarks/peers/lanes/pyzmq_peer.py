"""pyzmq: PUB to SUB and REQ to REP, from process to process; the publisher's socket is bound."""

from typing import Any

import zmq

from benchmarks.peers.lanes.bodies import END
from benchmarks.peers.lanes.driving import drive, find, requests
from benchmarks.peers.lanes.hearing import Heard
from benchmarks.peers.lanes.part import (
    ANSWER,
    QUESTION,
    SUBJECT,
    Figures,
    Part,
    say,
    wait_to_go,
)
from benchmarks.peers.lanes.progress import Progress
from benchmarks.running import Failed

_SUBJECT = SUBJECT.encode()


def publish(part: Part) -> Figures:
    """Publish, or ask, and measure."""
    with zmq.Context() as context, context.socket(_kind(part, zmq.REQ, zmq.PUB)) as socket:
        if part.case != "request":
            socket.setsockopt(zmq.SNDHWM, 0)
        socket.bind(part.at)
        say("ready")
        spenders = wait_to_go()
        if part.case == "request":
            figures = requests(lambda: _ask(socket), part, spenders)
            socket.send(END)
            return figures
        progress = Progress(part)

        def put(body: bytes) -> None:
            socket.send(_SUBJECT + body)

        find(put, progress)
        return drive(put, progress, part, spenders)


def receive(part: Part) -> dict[str, Any]:
    """Listen, or answer, until it is over."""
    with zmq.Context() as context, context.socket(_kind(part, zmq.REP, zmq.SUB)) as socket:
        if part.case != "request":
            socket.setsockopt(zmq.RCVHWM, 0)
            socket.subscribe(_SUBJECT)
        socket.connect(part.at)
        say("ready")
        return _answer(socket) if part.case == "request" else _listen(socket, part)


def _listen(socket: Any, part: Part) -> dict[str, Any]:
    is_over = False

    def end() -> None:
        nonlocal is_over
        is_over = True

    heard = Heard(part, end)
    callback = heard.callback
    start = len(_SUBJECT)
    while not is_over:
        callback(socket.recv()[start:])
    return heard.facts()


def _answer(socket: Any) -> dict[str, Any]:
    while socket.recv() != END:
        socket.send(ANSWER)
    return {}


def _ask(socket: Any) -> None:
    socket.send(QUESTION)
    if socket.recv() != ANSWER:
        raise Failed("an answer is not what was answered")


def _kind(part: Part, asking: int, publishing: int) -> int:
    return asking if part.case == "request" else publishing
