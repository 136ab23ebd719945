"""Every order in which the words of two rival openings can arrive, with a cut at any moment.

Two of three gateways open a channel of one name, each with a password of its own. Each state that
can be reached is looked at once: whatever word comes next, whichever gateway is cut off and when,
and whichever of the two begins later.
"""

from collections import deque
from typing import NamedTuple

import pytest
from tests.broker.talk import NotedDoor

from weft.broker.limits import Limits
from weft.broker.service import Service
from weft.errors import WeftError
from weft.mesh.channels.coordinator import ChannelCoordinator
from weft.mesh.channels.directory import KnownChannel
from weft.mesh.channels.leases import Promises
from weft.mesh.channels.open_vote import WAIT_NS
from weft.mesh.channels.protocol import ChannelWord
from weft.mesh.channels.quorum import Voters
from weft.mesh.counters import TrafficCounts
from weft.mesh.membership.mesh_handle import Mesh
from weft.wire.password_proof import Verifier

NODES = 3
NAME = b"room"
# So often time may run out after everything has become quiet.
QUIET_MAX = 2

# What can happen next: the other gateway begins, one is cut off, a word arrives, time passes.
BEGIN = ("begin",)
PASS = ("pass",)
Act = tuple[str | int, ...]


class Said(NamedTuple):
    """What a gateway says of itself, as far as anybody here asks."""

    name: str
    is_leaving: bool = False


class Neighbour(NamedTuple):
    """One gateway as the others know it."""

    number: int
    node: bytes
    advert: Said
    is_there: bool = True


class Neighbours:
    """All gateways but one; whoever is cut off is still counted, and cannot be told anything."""

    def __init__(self, own: int) -> None:
        self._all = {
            each + 1: Neighbour(each + 1, node_of(each), Said(f"g{each}"))
            for each in range(NODES)
            if each != own
        }

    def others(self) -> list[Neighbour]:
        """Everybody."""
        return list(self._all.values())

    there = others

    def numbered(self, number: int) -> Neighbour | None:
        """The one with a number."""
        return self._all.get(number)


class Town:
    """Three gateways, and the words that are on their way."""

    def __init__(self, *, is_forgetful: bool = False) -> None:
        self.queues: dict[tuple[int, int], deque[ChannelWord]] = {
            (a, b): deque() for a in range(NODES) for b in range(NODES) if a != b
        }
        self.cut = -1
        self.quiet = 0
        self.begun = 0
        self.now_ns = 1_000_000_000
        self.opened: list[tuple[int, int, bytes]] = []
        self.refused: list[tuple[int, str]] = []
        self._is_forgetful = is_forgetful
        self.gateways = [self._gateway(each) for each in range(NODES)]
        self.begin()

    def _gateway(self, place: int) -> ChannelCoordinator:
        service = Service("chat", f"g{place}", place + 1, Limits())
        service.now_ns = self.now_ns
        channels = ChannelCoordinator(service, Voters(node_of(place)), Promises())

        def say(number: int, word: ChannelWord) -> bool:
            if self.cut not in (place, number - 1):
                self.queues[(place, number - 1)].append(word)
            return True

        # Neighbours have what is asked of members here, and no more.
        channels.mesh = Mesh(Neighbours(place), TrafficCounts(), say)  # type: ignore[arg-type]
        return channels

    # What happens.

    def begin(self) -> None:
        """The next of the two opens its channel."""
        place = self.begun
        self.begun += 1
        channels = self.gateways[place]
        peer = channels.service.join(place, NotedDoor())

        def opened(result: KnownChannel | WeftError, _silent: list[str]) -> None:
            if isinstance(result, WeftError):
                self.refused.append((place, type(result).__name__))
            else:
                channels.admit(peer, result)
                self.opened.append((place, result.record.epoch, result.id))

        channels.open(peer, NAME, verifier_of(place), opened)

    def acts(self) -> list[Act]:
        """Everything that can happen next."""
        found: list[Act] = [("hear", a, b) for (a, b), queue in self.queues.items() if queue]
        is_quiet = not found
        if self.begun < 2:
            found.append(BEGIN)
        if self.cut < 0:
            found += [("cut", place) for place in range(NODES)]
        if is_quiet and self.quiet < QUIET_MAX:
            found.append(PASS)
        return found

    def act(self, act: Act) -> None:
        """Let one thing happen."""
        match act:
            case ("begin",):
                self.begin()
            case ("cut", int(place)):
                self.cut = place
                for pair, queue in self.queues.items():
                    if place in pair:
                        queue.clear()
            case ("hear", int(source), int(target)):
                word = self.queues[(source, target)].popleft()
                if self._is_forgetful:
                    self.gateways[target].promises = Promises()
                self.gateways[target].hear(source + 1, word)
            case _:
                self.quiet += 1
                self.now_ns += WAIT_NS
                for channels in self.gateways:
                    channels.service.now_ns = self.now_ns
                for channels in self.gateways:
                    channels.tick()

    # What is to be seen.

    def state(self) -> object:
        """All that makes a difference to what can happen later."""
        words = tuple(tuple(map(repr, queue)) for queue in self.queues.values())
        inside = tuple(
            (
                tuple(
                    (token, repr(each.record), tuple(sorted(each.verdicts.items())))
                    for token, each in channels._openings.items()
                ),
                repr(channels.promises.notes()),
                repr([sorted(each.holds.items()) for each in channels.promises._names.values()]),
                repr([(each.id, sorted(each.places)) for each in channels.table.all()]),
                tuple(channels.admissions.ids()),
            )
            for channels in self.gateways
        )
        return words, inside, self.cut, self.quiet, self.begun, tuple(self.opened), self.now_ns

    def problems(self) -> list[str]:
        """What must never be."""
        found = []
        epochs = [(epoch, channel) for _, epoch, channel in self.opened]
        if len({epoch for epoch, _ in epochs}) < len(set(epochs)):
            found.append(f"two owners in one epoch: {self.opened}")
        for place, channels in enumerate(self.gateways):
            for key in channels.admissions.ids():
                known = channels.table.get(bytes.fromhex(key.decode()))
                if known is not None and known.record.verifier != verifier_of(place):
                    found.append(f"gateway {place} admitted to another's channel")
        return found


def node_of(place: int) -> bytes:
    return bytes([place + 1]) * 16


def verifier_of(place: int) -> Verifier:
    return Verifier(bytes([65 + place]) * 32, bytes([97 + place]) * 32)


def town_after(acts: tuple[Act, ...], *, is_forgetful: bool) -> Town:
    town = Town(is_forgetful=is_forgetful)
    for act in acts:
        town.act(act)
    return town


def explore(*, is_forgetful: bool = False) -> tuple[int, set[str], set[tuple[str, ...]]]:
    """How many states there are, what is wrong with any of them, and how runs end."""
    seen: set[object] = set()
    problems: set[str] = set()
    ends: set[tuple[str, ...]] = set()
    stack: list[tuple[Act, ...]] = [()]
    # Of gateways that forget one is enough: without promises there is no end to what can happen.
    while stack and not (is_forgetful and problems):
        acts = stack.pop()
        town = town_after(acts, is_forgetful=is_forgetful)
        state = town.state()
        if state in seen:
            continue
        seen.add(state)
        problems.update(town.problems())
        following = town.acts()
        if not following:
            ends.add((*sorted(name for _, name in town.refused), f"{len(town.opened)} opened"))
        stack += [(*acts, act) for act in following]
    return len(seen), problems, ends


@pytest.mark.req("RLY-13", "RLY-14", "RLY-15")
def test_no_order_of_words_gives_one_epoch_two_owners() -> None:
    states, problems, ends = explore()
    assert problems == set()
    assert states > 1000
    # Every outcome is seen: one opens and the other learns so, none does, and both wait in vain.
    assert ("ChannelExists", "1 opened") in ends
    assert ("ChannelContested", "1 opened") in ends
    assert any(end[-1] == "0 opened" for end in ends)


def test_gateways_that_forget_what_they_promised_are_found_out() -> None:
    _, problems, _ = explore(is_forgetful=True)
    assert any("two owners" in problem for problem in problems)
