"""zenoh-python: sessions that are peers, without a router; the publisher's is connected to."""

import threading
from typing import Any

import zenoh

from benchmarks.peers.clients.zenoh_python import session
from benchmarks.peers.lanes.driving import drive, find, requests
from benchmarks.peers.lanes.hearing import Heard
from benchmarks.peers.lanes.part import (
    ANSWER,
    QUESTION,
    Figures,
    Part,
    say,
    wait_to_go,
    wait_until_over,
)
from benchmarks.peers.lanes.progress import Progress
from benchmarks.running import Failed

_KEY = "load/0"


def publish(part: Part) -> Figures:
    """Publish, or ask, and measure."""
    with session("peer", {"listen/endpoints": [part.at]}) as peer:
        say("ready")
        spenders = wait_to_go()
        if part.case == "request":
            _until_answered(peer)
            return requests(lambda: _ask(peer), part, spenders)
        progress = Progress(part)
        congestion = zenoh.CongestionControl.BLOCK
        declared = peer.declare_publisher(_KEY, congestion_control=congestion)
        find(declared.put, progress)
        figures = drive(declared.put, progress, part, spenders)
        declared.undeclare()
        return figures


def receive(part: Part) -> dict[str, Any]:
    """Listen, or answer, until it is over."""
    with session("peer", {"connect/endpoints": [part.at], "listen/endpoints": []}) as peer:
        if part.case == "request":
            answering = peer.declare_queryable(_KEY, _answer)
            say("ready")
            wait_until_over()
            answering.undeclare()
            return {}
        over = threading.Event()
        heard = Heard(part, over.set)
        callback = heard.callback
        listening = peer.declare_subscriber(
            _KEY, lambda sample: callback(sample.payload.to_bytes())
        )
        say("ready")
        over.wait()
        listening.undeclare()
        return heard.facts()


def _answer(query: Any) -> None:
    query.reply(_KEY, ANSWER)


def _ask(peer: Any) -> None:
    [reply] = peer.get(_KEY, payload=QUESTION)
    if reply.ok.payload.to_bytes() != ANSWER:
        raise Failed("an answer is not what was answered")


def _until_answered(peer: Any) -> None:
    while not list(peer.get(_KEY, payload=QUESTION)):
        pass
