"""Traces over gateways that only have traffic: a test says how the links lie and who knows it."""

from typing import Any

import pytest
from tests.mesh.gateways import Gateway, Mesh

from weft.errors import BadSubject, Overloaded, Reserved
from weft.mesh.protocol import Trace, Traced, Word
from weft.mesh.trace.trace_result import Journey
from weft.mesh.trace.tracing import JOURNEYS_MAX, TRACES_PER_S, Tracing
from weft.wire.frames import Kind

LINE = [(1, 2), (2, 3)]
SQUARE = [(1, 2), (2, 3), (3, 4), (1, 4)]

Facts = dict[str, Any]


class Tracer:
    """Lets every gateway of a mesh trace and answer."""

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self.over: list[Journey] = []
        self.tracing = {number: self._tracing(mesh[number]) for number in mesh.gateways}

    def _tracing(self, gateway: Gateway) -> Tracing:
        tracing = Tracing(gateway.service, gateway.traffic, {})

        def hear(origin: int, word: Word) -> None:
            assert isinstance(word, Traced)
            tracing.hear_traced(origin, word)

        gateway.traffic.on_trace = tracing.hear
        gateway.traffic.on_word = hear
        return tracing

    def begin(self, number: int, subject: bytes) -> None:
        """Trace from a gateway; what comes of it is in `over`."""
        assert self.tracing[number].begin(subject, None, self.over.append) is None
        self.mesh[number].flush()

    def trace(self, number: int, subject: bytes) -> dict[str, Facts]:
        """The gateways of a trace by name, once it is over."""
        self.begin(number, subject)
        self.mesh.carry()
        return self.found()

    def found(self) -> dict[str, Facts]:
        """The gateways of the trace that is over."""
        return {each["name"]: each for each in self.facts()["gateways"]}

    def facts(self) -> Facts:
        """Everything of the trace that is over."""
        journey = self.over.pop()
        assert not self.over
        return journey.facts("g{}".format, 100)


def patterns(gateway: Facts) -> list[str]:
    return [each["pattern"] for each in gateway["subscriptions"]]


def test_every_gateway_on_the_way_and_every_matching_subscription_is_named() -> None:
    mesh = Mesh(LINE)
    mesh[1].local(b"sensors.*")
    mesh[2].local(b"other")
    mesh[3].local(b"sensors.>", b"sensors.a", b"elsewhere")
    mesh.settle()
    tracer = Tracer(mesh)
    found = tracer.trace(1, b"sensors.a")
    assert list(found) == ["g1", "g2", "g3"]
    assert [each["state"] for each in found.values()] == ["here", "answered", "answered"]
    assert [patterns(each) for each in found.values()] == [
        ["sensors.*"],
        [],
        ["sensors.a", "sensors.>"],
    ]
    assert [each["by"] for each in found.values()] == ["", "g1", "g2"]
    assert [each["is_wanted"] for each in found.values()] == [True, False, True]
    assert found["g3"]["path"] == ["g1", "g2"]
    assert [each["name"] for each in found["g1"]["onward"]] == ["g2"]
    assert [each["name"] for each in found["g2"]["onward"]] == ["g3"]
    assert found["g3"]["onward"] == []


def test_nothing_is_delivered_by_a_trace() -> None:
    mesh = Mesh(LINE)
    local = [mesh[number].local(b"a") for number in (1, 2, 3)]
    mesh.settle()
    Tracer(mesh).trace(1, b"a")
    mesh.wait(3000)
    assert [each.frames() for each in local] == [[], [], []]
    assert mesh[1].traffic.counts.sent == 0


def test_a_trace_takes_the_links_that_a_message_takes_and_no_others() -> None:
    mesh = Mesh([*SQUARE, (2, 5), (4, 6)])
    mesh[3].local(b"a")
    mesh[5].local(b"a.>", b"a")
    mesh.settle()
    Tracer(mesh).trace(1, b"a")
    traced = {pair for pair, wire in mesh.wires.items() if _traces(wire.frames(Kind.FABRIC))}
    mesh[1].local().publish(b"a", b"x")
    mesh.carry()
    went = {pair for pair, wire in mesh.wires.items() if wire.frames(Kind.MESSAGE)}
    assert traced == went
    assert len(went) == 3


def _traces(frames: list[Any]) -> bool:
    # The number of the word is the first of its array.
    return any(frame.body[1] == 21 for frame in frames)


def test_a_subject_that_nobody_wants_goes_nowhere() -> None:
    mesh = Mesh(LINE)
    mesh[3].local(b"b")
    mesh.settle()
    tracer = Tracer(mesh)
    tracer.begin(1, b"a")
    facts = tracer.facts()
    assert not facts["is_heard"]
    assert [each["name"] for each in facts["gateways"]] == ["g1"]
    assert facts["responder"] == {"gateway": "", "name": ""}
    assert not any(wire.data for wire in mesh.wires.values())


def test_a_gateway_without_a_way_to_it_is_named_with_the_reason() -> None:
    mesh = Mesh(LINE)
    mesh[3].local(b"a")
    mesh.settle()
    mesh.cut(2, 3)
    found = Tracer(mesh).trace(1, b"a")
    assert [drop["name"] for drop in found["g1"]["drops"]] == ["g3"]
    assert (found["g3"]["state"], found["g3"]["reason"]) == ("dropped", "NoWay")
    assert found["g3"]["text"] == "no path to it from g1"


def test_a_gateway_on_the_way_that_has_lost_its_link_says_so() -> None:
    mesh = Mesh(LINE)
    mesh[3].local(b"a")
    mesh.settle()
    mesh.cut(2, 3, is_known=False)
    mesh.plot(2)
    found = Tracer(mesh).trace(1, b"a")
    assert found["g2"]["state"] == "answered"
    assert [drop["reason"] for drop in found["g2"]["drops"]] == ["NoWay"]
    assert found["g3"]["text"] == "no path to it from g2"


def test_a_gateway_that_passes_nothing_on_says_so() -> None:
    mesh = Mesh(LINE)
    mesh[2].traffic.is_relay = False
    mesh[3].local(b"a")
    mesh.settle()
    found = Tracer(mesh).trace(1, b"a")
    assert [drop["reason"] for drop in found["g2"]["drops"]] == ["NoRelay"]
    assert found["g3"]["text"] == "g2 does not relay"


def test_a_detour_is_shown_as_it_was_taken() -> None:
    mesh = Mesh([(1, 2), (2, 3), (2, 4), (4, 3)])
    mesh[3].local(b"a")
    mesh.settle()
    mesh.cut(2, 3, is_known=False)
    mesh.plot(2, 3)
    found = Tracer(mesh).trace(1, b"a")
    assert list(found) == ["g1", "g2", "g3"]
    assert found["g3"]["by"] == "g4"
    assert found["g3"]["path"] == ["g1", "g2", "g4"]
    assert [each["name"] for each in found["g2"]["onward"]] == ["g4"]
    assert found["g2"]["drops"] == []


def test_a_link_that_has_too_much_to_send_sheds_a_trace_and_says_so() -> None:
    mesh = Mesh(LINE)
    mesh[3].local(b"a")
    mesh.settle()
    mesh.wires[(2, 3)].is_stalled = True
    link = mesh[2].links[3]
    while link.outbox.cost() + link.outbox.pending < link.outbox.bounds.drop_bytes:
        link.outbox.hold(bytes(64 << 10), mesh[2].service.now_ns)
    mesh[2].flush()
    found = Tracer(mesh).trace(1, b"a")
    assert [drop["reason"] for drop in found["g2"]["drops"]] == ["Shed"]
    assert found["g3"]["text"] == "the backlog of the link from g2 is full"


def test_whoever_does_not_answer_is_named_with_the_link_that_carried_it_last() -> None:
    mesh = Mesh([(1, 2), (2, 3), (3, 4)])
    mesh[4].local(b"a")
    mesh.settle()
    tracer = Tracer(mesh)
    mesh.wires[(2, 3)].is_cut = True
    tracer.begin(1, b"a")
    mesh.carry()
    assert tracer.over == []
    mesh[1].service.now_ns += 1_999_000_000
    tracer.tracing[1].tick()
    assert tracer.over == []
    mesh[1].service.now_ns += 1_000_000
    tracer.tracing[1].tick()
    found = tracer.found()
    assert [each["state"] for each in found.values()] == ["here", "answered", "silent", "silent"]
    assert found["g3"]["text"] == found["g4"]["text"] == ("no answer; last sent from g2 to g3")


def test_a_trace_that_is_over_hears_nothing_more() -> None:
    mesh = Mesh([(1, 2)])
    mesh[2].local(b"a")
    mesh.settle()
    tracer = Tracer(mesh)
    mesh.wires[(2, 1)].is_stalled = True
    tracer.begin(1, b"a")
    mesh.carry()
    mesh[1].service.now_ns += 2_000_000_000
    tracer.tracing[1].tick()
    assert tracer.found()["g2"]["state"] == "silent"
    mesh.wires[(2, 1)].is_stalled = False
    mesh[2].go_on()
    mesh.carry()
    tracer.tracing[1].tick()
    assert tracer.over == []


def test_the_gateway_and_the_member_that_get_the_next_message_of_a_group_are_named() -> None:
    mesh = Mesh([(1, 2), (1, 3)])
    there = {number: mesh[number].local(b"jobs.*", group=b"workers") for number in (2, 3)}
    mesh.settle()
    tracer = Tracer(mesh)
    told = []
    got = []
    for _ in range(4):
        tracer.begin(1, b"jobs.a")
        mesh.carry()
        [group] = tracer.facts()["groups"]
        told.append(group["gateway"])
        assert group["name"] == there[int(group["gateway"][1:])].peer.name
        mesh[1].local().publish(b"jobs.a", b"x")
        mesh.carry()
        got += [f"g{number}" for number, local in there.items() if local.messages()]
    assert told == got
    assert set(told) == {"g2", "g3"}


def test_a_group_with_a_member_here_goes_nowhere_else() -> None:
    mesh = Mesh([(1, 2)])
    here = mesh[1].local(b"jobs.*", group=b"workers")
    mesh[2].local(b"jobs.*", group=b"workers")
    mesh.settle()
    tracer = Tracer(mesh)
    tracer.begin(1, b"jobs.a")
    facts = tracer.facts()
    assert facts["groups"] == [{"group": "workers", "gateway": "g1", "name": here.peer.name}]
    assert [each["name"] for each in facts["gateways"]] == ["g1"]


def test_who_would_answer_a_request_is_named() -> None:
    mesh = Mesh(LINE)
    there = mesh[3].local(b"quotes.*")
    mesh.settle()
    tracer = Tracer(mesh)
    tracer.begin(1, b"quotes.get")
    mesh.carry()
    assert tracer.facts()["responder"] == {"gateway": "g3", "name": there.peer.name}


@pytest.mark.parametrize("subject", [b"a.*", b"", b"a..b"])
def test_what_is_no_subject_cannot_be_traced(subject: bytes) -> None:
    with pytest.raises(BadSubject):
        Tracer(Mesh(LINE)).begin(1, subject)


def test_what_belongs_to_the_system_cannot_be_traced() -> None:
    with pytest.raises(Reserved):
        Tracer(Mesh(LINE)).begin(1, b"_WEFT.ask.status")


def test_traces_that_wait_are_bounded() -> None:
    mesh = Mesh([(1, 2)])
    mesh[2].local(b"a")
    mesh.settle()
    tracer = Tracer(mesh)
    for _ in range(JOURNEYS_MAX):
        tracer.begin(1, b"a")
    refused = tracer.tracing[1].begin(b"a", None, tracer.over.append)
    assert isinstance(refused, Overloaded)


def test_more_traces_than_people_ask_for_are_not_answered() -> None:
    mesh = Mesh([(1, 2)])
    mesh[2].local(b"a")
    mesh.settle()
    Tracer(mesh)
    for _ in range(TRACES_PER_S + 5):
        mesh[1].traffic.trace([2], Trace(1, b"a"))
    mesh[1].flush()
    mesh.carry()
    assert mesh[2].traffic.counts.refused == {"TooManyTraces": 5}
    assert len(mesh.wires[(2, 1)].frames(Kind.FABRIC)) == TRACES_PER_S


@pytest.mark.parametrize("subject", [b"_INBOX.x", b"a.>", b"\xff"])
def test_a_trace_of_what_is_no_subject_is_refused_and_the_link_stays(subject: bytes) -> None:
    mesh = Mesh([(1, 2)])
    Tracer(mesh)
    mesh[1].traffic.trace([2], Trace(1, subject))
    mesh[1].flush()
    mesh.carry()
    assert mesh[2].traffic.counts.refused == {"BadTrace": 1}
    assert not mesh[2].links[1].is_over


def test_an_answer_of_one_that_is_not_on_the_way_is_not_believed() -> None:
    mesh = Mesh([(1, 2), (1, 3)])
    mesh[2].local(b"a")
    mesh.settle()
    tracer = Tracer(mesh)
    tracer.begin(1, b"a")
    tracer.tracing[1].hear_traced(3, Traced(1, (1,)))
    mesh.carry()
    assert list(tracer.found()) == ["g1", "g2"]
