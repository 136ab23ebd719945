"""zenoh-python: blocking, callbacks on its own threads, congestion control that blocks.

Two sessions: through a router in another process, or as peers that are connected to each other.
"""

import json
import time
from typing import Any

import zenoh

from benchmarks.peers.clients.driving import (
    STALL_S,
    Figures,
    Heard,
    Task,
    blocking_flow,
    blocking_requests,
)

_KEY = "load/0"


def run(task: Task) -> Figures:
    """Measure through a router."""
    connect = {"connect/endpoints": [f"tcp/127.0.0.1:{task.port}"]}
    with session("client", connect) as subscriber, session("client", connect) as publisher:
        return _run(task, subscriber, publisher)


def run_peers(task: Task) -> Figures:
    """Measure without one."""
    listen = {"listen/endpoints": [f"tcp/127.0.0.1:{task.port}"]}
    connect = {"connect/endpoints": [f"tcp/127.0.0.1:{task.port}"], "listen/endpoints": []}
    with session("peer", listen) as subscriber, session("peer", connect) as publisher:
        return _run(task, subscriber, publisher)


def session(mode: str, settings: dict[str, list[str]]) -> Any:
    """Open a session that looks for nobody by itself."""
    config = zenoh.Config()
    config.insert_json5("mode", json.dumps(mode))
    config.insert_json5("scouting/multicast/enabled", "false")
    for name, value in settings.items():
        config.insert_json5(name, json.dumps(value))
    return zenoh.open(config)


def _run(task: Task, subscriber: Any, publisher: Any) -> Figures:
    if task.case == "request":
        answering = subscriber.declare_queryable("question", _answer)
        _until(lambda: any(publisher.get("question")))
        figures = blocking_requests(lambda: list(publisher.get("question")), task)
        answering.undeclare()
        return figures
    heard = Heard()

    def hear_fields(sample: Any) -> None:
        heard.fields(json.loads(sample.payload.to_bytes()))

    listening = subscriber.declare_subscriber(_KEY, hear_fields if task.is_typed else heard.message)
    declared = publisher.declare_publisher(_KEY, congestion_control=zenoh.CongestionControl.BLOCK)
    _until(lambda: declared.matching_status.matching)
    figures = blocking_flow(lambda _, body: declared.put(body), heard, task)
    declared.undeclare()
    listening.undeclare()
    return figures


def _answer(query: Any) -> None:
    query.reply("question", b"pong")


def _until(is_so: Any) -> None:
    gives_up = time.monotonic() + STALL_S
    while not is_so():
        if time.monotonic() > gives_up:
            raise RuntimeError("the sessions did not find each other")
        time.sleep(0.01)
