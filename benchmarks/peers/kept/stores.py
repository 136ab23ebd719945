"""How a broker is told to keep what is published, and asked how much it has kept."""

import json
import socket
from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks.running import Failed, status_at

SUBJECT = "load.0"
ANSWER_S = 10
_STREAM = "KEPT"


class Store(NamedTuple):
    """What keeps messages at a port: `prepare` makes it, `kept` counts what is in it."""

    prepare: Callable[[int], None]
    kept: Callable[[int], int]


def _nothing_to_prepare(_port: int) -> None:
    pass


def _kept_by_weft(port: int) -> int:
    journal = status_at(port)["services"]["default"]["status"]["journal"]
    return 0 if journal is None else int(journal["safe"])


def _make_stream(port: int) -> None:
    stream = {"name": _STREAM, "subjects": [SUBJECT], "storage": "file"}
    _ask_jetstream(port, "STREAM.CREATE", stream)


def _kept_by_jetstream(port: int) -> int:
    return int(_ask_jetstream(port, "STREAM.INFO", {})["state"]["messages"])


def _kept_by_redis(port: int) -> int:
    with socket.create_connection(("127.0.0.1", port), ANSWER_S) as redis:
        redis.sendall(f"XLEN {SUBJECT}\r\n".encode())
        with redis.makefile("rb") as lines:
            answer = lines.readline().decode().strip()
    if not answer.startswith(":"):
        raise Failed(f"redis does not count: {answer}")
    return int(answer[1:])


def _ask_jetstream(port: int, verb: str, question: dict[str, Any]) -> dict[str, Any]:
    asked = json.dumps(question)
    subject = f"$JS.API.{verb}.{_STREAM}"
    with socket.create_connection(("127.0.0.1", port), ANSWER_S) as nats:
        nats.sendall(
            'CONNECT {"verbose": false}\r\nSUB answer 1\r\n'
            f"PUB {subject} answer {len(asked)}\r\n{asked}\r\n".encode()
        )
        with nats.makefile("rb") as lines:
            head = next((line for line in lines if line.startswith((b"MSG ", b"-ERR"))), b"")
            if not head.startswith(b"MSG "):
                raise Failed(f"{subject}: {head.decode().strip() or 'no answer'}")
            answer: dict[str, Any] = json.loads(lines.read(int(head.split()[-1])))
    if "error" in answer:
        raise Failed(f"{subject}: {answer['error']['description']}")
    return answer


STORES = {
    "weft": Store(_nothing_to_prepare, _kept_by_weft),
    "nats": Store(_make_stream, _kept_by_jetstream),
    "redis": Store(_nothing_to_prepare, _kept_by_redis),
}
