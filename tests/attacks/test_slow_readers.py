"""Readers that stop reading: they cost at most their bound, and are cut for the stated reason."""

import pytest
from tests.attacks.gateway_process import eventually, rss_bytes
from tests.attacks.readers import Readers, numbered
from tests.attacks.siege import Siege
from tests.attacks.stranger import Stranger, subscribe

BOUND = 1 << 20
SETTINGS = {"limits.outbox_bytes": BOUND, "limits.outbox_age_s": 1.0}
MIB = 1 << 20
COUNT = 20
# More than the bound and what the kernel takes, several times.
MESSAGES = 2000


@pytest.mark.parametrize("policy", ["cut", "drop_new", "drop_old", "latest"])
def test_a_stopped_reader_costs_at_most_its_bound_and_is_cut_as_slow(
    siege: Siege, policy: str
) -> None:
    publisher = siege.stranger()
    with Readers(siege.port, COUNT, subscribe(b"flood.>", policy=policy)) as readers:
        readers.stop()
        before = rss_bytes(siege.worker)
        with siege.bystander.talking():
            publisher.send(numbered(range(MESSAGES)))
            publisher.hear_until_pong()
            held = rss_bytes(siege.worker) - before
            eventually(lambda: siege.counted()["ended SlowReader"] == COUNT, siege.counted)
        readers.go_on()
        for heard in readers.heard():
            assert heard["is_cut"]
            assert heard["is_in_order"]
            assert heard["messages"] < MESSAGES
    assert held < COUNT * BOUND + 24 * MIB, held / MIB
    siege.await_counts(ended_SlowReader=COUNT)
    status = siege.gateway.service()["status"]
    assert (status["slow_readers"], status["backlog_bytes"]) == (0, 0)


def test_a_reader_that_reads_a_little_now_and_then_is_held_to_its_bound(siege: Siege) -> None:
    """It never stops for long, so age does not end it; what it does not read, bytes do."""
    with Stranger(siege.port) as slow:
        slow.send(subscribe(b"flood.>"))
        slow.hear_until_pong()
        publisher = siege.stranger()
        for start in range(0, 4 * MESSAGES, 100):
            publisher.send(numbered(range(start, start + 100)))
            publisher.hear_until_pong()
            if siege.counted()["ended SlowReader"]:
                break
            slow.socket.recv(1000)
    siege.await_counts(ended_SlowReader=1)
