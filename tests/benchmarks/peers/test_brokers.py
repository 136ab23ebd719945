"""Every broker that is installed here, started and asked for a little."""

import os

import pytest
from benchmarks.peers.brokers import PEERS, Peer
from benchmarks.running import load

# The others are installed only where they are measured.
INSTALLED = [peer for peer in PEERS.values() if peer.is_installed]


@pytest.fixture(params=INSTALLED, ids=[peer.name for peer in INSTALLED])
def peer(request: pytest.FixtureRequest) -> Peer:
    found: Peer = request.param
    return found


def test_a_broker_tells_its_version(peer: Peer) -> None:
    assert all(part.isdigit() for part in peer.version.split("."))


def test_a_broker_delivers_what_is_published_and_ends(peer: Peer) -> None:
    with peer.running() as broker:
        for patterns in (0, 30):
            figures = load(
                "flow",
                protocol=peer.protocol,
                port=broker.port,
                subscribers=3,
                patterns=patterns,
                subjects=7,
                count=20,
            )
            assert figures["deliveries"] == (20 if patterns else 60)
        figures = load("request", protocol=peer.protocol, port=broker.port, count=5)
        assert figures["messages"] == 5
    for pid in broker.pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
