"""Two ways, one stream: every order in which both can bring what was sent, with one break.

Up to eight messages go through the gateway or by the lane, in every way they can be dealt out.
Both ways keep their order and nothing else is known of them: any of them may be ahead. The lane may
break at any moment, and the sender may notice at any later one.
"""

import os
from collections import deque
from collections.abc import Iterator
from copy import copy
from itertools import product
from typing import NamedTuple

import pytest
from tests.client.lanes.naive import Naive

from weft.client.lanes.receive_stream import In
from weft.client.lanes.send_stream import Out, frames_in, switch_frame
from weft.wire.frames import Kind, encode, parse
from weft.wire.lane_messages import word_in

# With eight there are three million states, which takes minutes.
COUNT_MAX = int(os.environ.get("WEFT_INTERLEAVED", "5"))
MESSAGES = [encode(Kind.MESSAGE, b"s", bytes([number])) for number in range(8)]


class State:
    """Both ends and what is between them."""

    def __init__(self, joins: type[In]) -> None:
        self.sent = 0
        self.lane: deque[bytes] = deque()
        self.gateway: deque[bytes] = deque()
        self.acks: deque[int] = deque()
        self.is_broken = False
        self.out = Out(9, 5, self.lane.append)
        self.incoming = joins()
        self.taken: tuple[int, ...] = ()

    def copied(self) -> "State":
        """The same once more, sharing nothing that changes."""
        other = copy(self)
        other.lane = copy(self.lane)
        other.gateway = copy(self.gateway)
        other.acks = copy(self.acks)
        other.out = copy(self.out)
        other.out._unacked = copy(self.out._unacked)
        other.out._write = lambda stretch: other.lane.extend(frames_in(stretch))
        other.incoming = copy(self.incoming)
        other.incoming._by_lane = copy(self.incoming._by_lane)
        other.incoming._by_gateway = copy(self.incoming._by_gateway)
        return other

    def key(self) -> tuple[object, ...]:
        """What tells one state from another."""
        return (
            self.sent,
            self.is_broken,
            self.out.is_over,
            self.out.acked,
            len(self.lane),
            len(self.gateway),
            tuple(self.acks),
            self.taken,
            self.incoming.current,
            self.incoming.taken,
        )

    def send(self, is_by_lane: bool) -> None:
        """Send the next message; through the gateway if the lane is known to be gone."""
        message = MESSAGES[self.sent]
        self.sent += 1
        out = self.out
        if not out.is_over and is_by_lane != out.is_by_lane:
            out.switch()
            self.gateway.append(switch_frame([out]))
        if is_by_lane and not out.is_over:
            out.send(message, 1)
        else:
            self.gateway.append(message)

    def notice(self) -> None:
        """The sender finds the lane broken."""
        self.gateway.extend(self.out.finish())

    def break_lane(self) -> None:
        """Everything on the lane is lost, both ways."""
        self.is_broken = True
        self.lane.clear()
        self.acks.clear()

    def hear_gateway(self) -> None:
        """The next frame comes through the gateway."""
        frame = self.gateway.popleft()
        incoming = self.incoming
        kind = frame[4]
        if kind == Kind.MESSAGE:
            runs = incoming.by_gateway([frame])
        elif kind == Kind.TAIL:
            runs = incoming.by_tail([frame])
        else:
            word, facts = word_in(frame)
            if word == "switch":
                runs = incoming.switched_by_gateway(facts.get_list("numbers")[0])
            elif word == "tail":
                # Whoever hears of the tail takes nothing more from the lane.
                runs = incoming.tail(facts.get_int64("from"))
                self.lane.clear()
            else:
                runs = incoming.end(facts.get_int64("count"))
        self._take(runs)

    def hear_lane(self) -> None:
        """The next frame comes by the lane; it is confirmed if it could be taken."""
        frame = self.lane.popleft()
        before = self.incoming.taken
        if frame[4] == Kind.MESSAGE:
            runs = self.incoming.by_lane([frame])
        else:
            runs = self.incoming.switched_by_lane(word_in(frame)[1].get_int64("number"))
        self._take(runs)
        if self.incoming.taken > before:
            self.acks.append(self.incoming.taken)

    def hear_ack(self) -> None:
        """The sender hears what was taken."""
        assert self.out.ack(self.acks.popleft())

    def _take(self, runs: list[list[bytes]]) -> None:
        runs = runs + [run for held in self.incoming.released() for run in held]
        self.taken += tuple(parse(frame).body[0] for run in runs for frame in run)

    def steps(self, ways: tuple[bool, ...]) -> Iterator["State"]:
        """Everything that can happen next."""
        possible = []
        if self.sent < len(ways):
            possible.append("send")
        possible += ["hear_gateway"] if self.gateway else []
        possible += ["hear_lane"] if self.lane and not self.is_broken else []
        possible += ["hear_ack"] if self.acks else []
        possible += ["break_lane"] if not self.is_broken else []
        possible += ["notice"] if self.is_broken and not self.out.is_over else []
        for step in possible:
            after = self.copied()
            if step == "send":
                after.send(ways[self.sent])
            else:
                getattr(after, step)()
            yield after


class Explored(NamedTuple):
    """What there was to see."""

    states: int
    ends: int
    wrong: int


def explore(ways: tuple[bool, ...], joins: type[In]) -> Explored:
    """Go through every state that can be reached, and judge those in which nothing is left."""
    expected = tuple(range(len(ways)))
    first = State(joins).copied()
    seen = {first.key()}
    left = [first]
    ends = wrong = 0
    while left:
        state = left.pop()
        is_end = state.sent == len(ways) and not state.gateway
        is_end = is_end and (state.out.is_over if state.is_broken else not state.lane)
        if is_end:
            ends += 1
            wrong += state.taken != expected
        for after in state.steps(ways):
            key = after.key()
            if key not in seen:
                seen.add(key)
                left.append(after)
    return Explored(len(seen), ends, wrong)


@pytest.mark.req("HUB-22")
@pytest.mark.parametrize("count", range(1, COUNT_MAX + 1))
def test_nothing_is_lost_doubled_or_out_of_order_however_both_ways_interleave(count: int) -> None:
    states = ends = 0
    for ways in product([False, True], repeat=count):
        found = explore(ways, In)
        assert found.wrong == 0, ways
        states += found.states
        ends += found.ends
    assert ends > 2**count
    print(f"{count} messages: {states:,} states, {ends:,} ends")


@pytest.mark.req("HUB-22")
def test_a_receiver_that_takes_what_comes_is_found_out() -> None:
    wrong = sum(explore(ways, Naive).wrong > 0 for ways in product([False, True], repeat=4))
    # Only what goes through the gateway from the first to the last message cannot go wrong.
    assert wrong == 2**4 - 1
