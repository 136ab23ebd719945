"""Ten thousand connections that say nothing, and two that talk to each other."""

import pytest
from benchmarks.running import Gateway, Load, steady_rss_bytes

import weft

CONNECTIONS = 10_000
AT_ONCE = 100
KIB_EACH_MAX = 4


@pytest.mark.req("MM-26")
def test_ten_thousand_idle_connections_are_held_in_four_kib_each() -> None:
    with Gateway() as gateway:
        pids = (gateway.front, gateway.worker())
        before = sum(map(steady_rss_bytes, pids))
        idle = Load("connect", port=gateway.port, count=CONNECTIONS, window=AT_ONCE)
        assert idle.figures()["connections"] == CONNECTIONS
        with weft.Connection(f"127.0.0.1:{gateway.port}") as client:
            heard = client.subscribe("beside.them")
            client.publish("beside.them", b"here")
            assert heard.next(timeout=10).payload == b"here"
            assert gateway.status()["connections"] == CONNECTIONS + 1
        grown = sum(map(steady_rss_bytes, pids)) - before
        assert grown <= CONNECTIONS * KIB_EACH_MAX * 1024
        idle.end()
