"""Subscribers that are stopped beside others that read: the others get everything."""

from collections.abc import Callable

import pytest
from tests.attacks.gateway_process import GatewayProcess, eventually
from tests.attacks.readers import Readers, numbered
from tests.attacks.stranger import Stranger, message, subscribe

Serve = Callable[..., GatewayProcess]
MESSAGES = 1500
WISH = subscribe(b"flood.>")
END = message(b"flood.end", b"the end")


def send_paced(gateway: GatewayProcess, publisher: Stranger, stopped: int) -> None:
    """Send in steps that whoever reads can follow: this is about those who do not."""
    for start in range(0, MESSAGES, 50):
        publisher.send(numbered(range(start, start + 50)))
        publisher.hear_until_pong()
        eventually(lambda: gateway.service()["status"]["slow_readers"] <= stopped, gateway.status)


def test_stopped_readers_cost_the_others_nothing(serve: Serve) -> None:
    gateway = serve({"limits.outbox_bytes": 8 << 20})
    with (
        Readers(gateway.port, 30, WISH) as stopped,
        Readers(gateway.port, 30, WISH) as reading,
        Stranger(gateway.port) as publisher,
    ):
        stopped.stop()
        send_paced(gateway, publisher, 30)
        publisher.send(END)
        for heard in reading.heard():
            assert heard == {
                "messages": MESSAGES,
                "missed": 0,
                "is_in_order": True,
                "is_cut": False,
            }
        eventually(
            lambda: gateway.counts()["ended SlowReader"] == 30, lambda: f"{gateway.counts()}"
        )


@pytest.mark.parametrize("policy", ["drop_new", "drop_old", "latest"])
def test_a_reader_that_goes_on_in_time_is_told_of_every_loss(serve: Serve, policy: str) -> None:
    # So long that nobody is cut for its age, however busy the machine is.
    gateway = serve({"limits.outbox_bytes": 1 << 20, "limits.outbox_age_s": 20.0})
    with (
        Readers(gateway.port, 5, subscribe(b"flood.>", policy=policy)) as readers,
        Stranger(gateway.port) as publisher,
    ):
        readers.stop()
        publisher.send(numbered(range(MESSAGES)))
        publisher.hear_until_pong()
        assert gateway.service()["status"]["slow_readers"] == 5
        readers.go_on()
        eventually(lambda: gateway.service()["status"]["slow_readers"] == 0, gateway.status)
        publisher.send(END)
        for heard in readers.heard():
            assert not heard["is_cut"]
            assert heard["is_in_order"]
            assert heard["missed"] > 0
            assert heard["messages"] + heard["missed"] == MESSAGES
