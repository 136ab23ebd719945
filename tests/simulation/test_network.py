"""Who reaches whom: what is dialled answers, refuses, or is not heard of."""

from random import Random

import pytest

from weft.simulation.clock import MS, SECOND, Clock
from weft.simulation.network import DIAL_NS, Network
from weft.simulation.wire import Pace, Wire


class Machine:
    """Notes how dials went, and what comes."""

    def __init__(self, network: Network, place: int) -> None:
        self.place = place
        self.is_up = True
        self.is_dark = False
        self.told: list[tuple[int, str]] = []
        self.got = b""
        self.outgoing: Wire
        self._network = network
        network.sites[f"machine {place}"] = self

    def accept(self, outgoing: Wire, incoming: Wire) -> None:
        self.outgoing = outgoing
        incoming.receiver = self
        self._note("accepted")

    def connected(self, address: str, outgoing: Wire, incoming: Wire) -> None:
        self.outgoing = outgoing
        incoming.receiver = self
        self._note(f"connected with {address}")

    def unreachable(self, address: str, why: str) -> None:
        self._note(f"{address} {why}")

    def take(self, data: bytes) -> None:
        self.got += data

    def hang_up(self) -> None:
        self._note("hung up")

    def words(self) -> list[str]:
        return [text for _, text in self.told]

    def _note(self, text: str) -> None:
        self.told.append((self._network.clock.now_ns, text))


@pytest.fixture
def network() -> Network:
    return Network(Clock(), Random(1))


@pytest.fixture
def machines(network: Network) -> tuple[Machine, Machine]:
    return Machine(network, 1), Machine(network, 2)


def dial(network: Network, machines: tuple[Machine, Machine], until_s: int = 5) -> None:
    network.dial(machines[0], "machine 2")
    network.clock.run(network.clock.now_ns + until_s * SECOND)


def test_both_ends_of_a_connection_hear_each_other(
    network: Network, machines: tuple[Machine, Machine]
) -> None:
    one, other = machines
    dial(network, machines)
    assert (one.words(), other.words()) == (["connected with machine 2"], ["accepted"])
    one.outgoing.send(b"a")
    other.outgoing.send(b"b")
    network.clock.run(6 * SECOND)
    assert (one.got, other.got) == (b"b", b"a")


def test_a_machine_where_nothing_listens_refuses(
    network: Network, machines: tuple[Machine, Machine]
) -> None:
    machines[1].is_up = False
    dial(network, machines)
    assert machines[0].words() == ["machine 2 refused"]


@pytest.mark.parametrize("way", [(1, 2), (2, 1)])
def test_a_dial_by_a_way_that_is_cut_times_out(
    network: Network, machines: tuple[Machine, Machine], way: tuple[int, int]
) -> None:
    network.cut([way])
    dial(network, machines)
    assert machines[0].told == [(DIAL_NS, "machine 2 timed out")]


def test_a_dial_is_tried_again_after_a_second(
    network: Network, machines: tuple[Machine, Machine]
) -> None:
    machines[1].is_dark = True
    dial(network, machines, until_s=0)
    machines[1].is_dark = False
    network.clock.run(DIAL_NS)
    assert machines[0].words() == ["connected with machine 2"]


def test_an_address_that_nobody_has_times_out(
    network: Network, machines: tuple[Machine, Machine]
) -> None:
    network.dial(machines[0], "machine 3")
    network.clock.run(5 * SECOND)
    assert machines[0].words() == ["machine 3 timed out"]


def test_dials_can_be_made_to_fail(network: Network, machines: tuple[Machine, Machine]) -> None:
    network.refused_percent = 100
    dial(network, machines)
    assert machines[0].words() == ["machine 2 refused"]


def test_a_link_that_breaks_is_told_to_both(
    network: Network, machines: tuple[Machine, Machine]
) -> None:
    dial(network, machines)
    machines[0].outgoing.send(b"lost")
    assert network.reset(1, 2) == 1
    network.clock.run(9 * SECOND)
    assert [machine.words()[-1] for machine in machines] == ["hung up", "hung up"]
    assert machines[1].got == b""


def test_a_power_cut_is_told_to_nobody(network: Network, machines: tuple[Machine, Machine]) -> None:
    dial(network, machines)
    network.go_dark(2)
    network.clock.run(9 * SECOND)
    assert "hung up" not in machines[0].words()


def test_what_is_cut_twice_has_to_be_mended_twice(network: Network) -> None:
    network.cut([(1, 2)])
    network.cut([(1, 2)])
    network.mend([(1, 2)])
    assert network.is_cut((1, 2))
    network.mend([(1, 2)])
    assert not network.is_cut((1, 2))


def test_two_machines_can_be_far_apart(network: Network, machines: tuple[Machine, Machine]) -> None:
    dial(network, machines)
    network.change_pace(1, 2, Pace(400 * MS, 0, 1 << 30))
    machines[0].outgoing.send(b"a")
    network.clock.run(network.clock.now_ns + 399 * MS)
    assert machines[1].got == b""
    network.clock.run(network.clock.now_ns + MS)
    assert machines[1].got == b"a"
