"""WebSockets that are not read, and floods on them: they cost at most their bound, and are cut."""

import json

from tests.attacks.gateway_process import eventually, rss_bytes
from tests.attacks.siege import Siege
from tests.attacks.stranger import message
from tests.attacks.web_stranger import WebStranger
from tests.transports.houses import framed, text
from websockets.frames import Opcode

BOUND = 1 << 20
SETTINGS = {
    "limits.outbox_bytes": BOUND,
    "limits.outbox_age_s": 1.0,
    # A client gives a gateway up after twice this: on a busy machine the bystander must not.
    "limits.ping_s": 5.0,
    "limits.control_burst": 2000,
    "limits.control_per_s": 1000,
}
MIB = 1 << 20
COUNT = 10
WORDS = b"x" * 1000


def test_a_websocket_that_is_not_read_costs_at_most_its_bound_and_is_cut(siege: Siege) -> None:
    readers = [WebStranger(siege.port) for _ in range(COUNT)]
    for reader in readers:
        reader.tell({"interest": "/flood"})
        reader.told_until_pong()
    publisher = siege.stranger()
    before = rss_bytes(siege.worker)
    with siege.bystander.talking():
        for _ in range(40):
            publisher.send(message(b"flood", WORDS) * 200)
            publisher.hear_until_pong()
        held = rss_bytes(siege.worker) - before
        eventually(lambda: siege.counted()["ended SlowReader"] == COUNT, siege.counted)
    assert held < COUNT * 2 * BOUND + 24 * MIB, held / MIB
    for reader in readers:
        # What it was sent before is still to be read; then it is told why, or just cut.
        assert reader.hear_close() in (0, 4205)
        reader.socket.close()


def test_a_websocket_that_publishes_and_never_reads_is_cut(siege: Siege) -> None:
    stranger = WebStranger(siege.port)
    stranger.tell({"interest": "/own"})
    stranger.told_until_pong()
    stranger.socket.settimeout(0.5)
    before = rss_bytes(siege.worker)
    said = text(json.dumps({"path": "/own", "data": "x" * 1000, "ack": 1})) * 100
    with siege.bystander.talking():
        try:
            while not siege.counted()["ended SlowReader"]:
                stranger.send(said)
        except TimeoutError:
            # Who does not read is not read from.
            pass
        eventually(lambda: siege.counted()["ended SlowReader"] == 1, siege.counted)
    assert rss_bytes(siege.worker) - before < 4 * BOUND + 24 * MIB
    stranger.socket.close()


def test_errors_that_nobody_reads_do_not_pile_up(siege: Siege) -> None:
    stranger = WebStranger(siege.port)
    stranger.socket.settimeout(0.5)
    before = rss_bytes(siege.worker)
    with siege.bystander.talking():
        try:
            while not siege.counted()["ended ControlFlood"]:
                stranger.send(text("no JSON") * 1000)
        except TimeoutError:
            pass
        eventually(
            lambda: siege.counted()["ended ControlFlood"] + siege.counted()["ended SlowReader"],
            siege.counted,
        )
    assert rss_bytes(siege.worker) - before < 24 * MIB
    stranger.socket.close()


def test_a_flood_of_pings_is_cut(siege: Siege) -> None:
    stranger = WebStranger(siege.port)
    with siege.bystander.talking():
        stranger.send(framed(Opcode.PING, b"x" * 125) * 5000)
        assert stranger.hear_close() == 4608
    siege.await_counts(refused_ControlFlood=1, ended_ControlFlood=1)
    stranger.socket.close()


def test_one_that_answers_no_ping_is_cut(siege: Siege) -> None:
    stranger = WebStranger(siege.port)
    assert stranger.hear_close() in (0, 4206)
    eventually(lambda: siege.counted()["ended Silent"] == 1, siege.counted)
    stranger.socket.close()


def test_one_that_stops_in_the_middle_of_closing_is_let_go(siege: Siege) -> None:
    strangers = [WebStranger(siege.port) for _ in range(50)]
    for stranger in strangers:
        stranger.close()
    # They hear that it is closed, and do not hang up themselves.
    for stranger in strangers:
        assert stranger.hear_close() == 1000
    eventually(lambda: siege.gateway.connections() == 2, siege.gateway.status)
    for stranger in strangers:
        stranger.socket.close()
