"""What the job hot_routes finds changes what a gateway offers lanes for."""

import math
from typing import Any

import pytest
from tests.broker.talk import message, subscribe
from tests.lanes.lane_house import HOT, LaneHouse, heat, names

from weft.broker.journal.release_staged import Release
from weft.broker.limits import Limits
from weft.lanes import hot_subjects
from weft.lanes.hot_subjects import TTL_MAX_S, Findings
from weft.wire.frames import Kind, encode
from weft.wire.message.message import Message
from weft.wire.subjects import HOT_ROUTES

FOUND: dict[str, Any] = {
    "service": "weather",
    "subject": HOT.decode(),
    "messages_s": 5000.0,
    "bytes_s": 1e6,
    "ttl_s": 10.0,
}


def find(house: LaneHouse, *bodies: bytes) -> None:
    """Publish as a job does, and let the gateway look."""
    if not house.lanes.findings.is_begun:
        house.lanes.findings.begin()
    for body in bodies:
        start = house.arena.put(encode(Kind.MESSAGE, HOT_ROUTES, body))
        Release(house.service).publish(start, house.arena.fill)
    house.flush()
    house.lanes.tick()
    house.flush()


def found(**facts: Any) -> bytes:
    return Message.from_dict(FOUND | facts).encode()


@pytest.mark.req("SPK-5")
def test_a_finding_makes_a_route_hot_as_soon_as_it_is_used() -> None:
    house = LaneHouse()
    bob, ann = house.knowing("bob", HOT), house.knowing("ann")
    find(house, found())
    assert names(bob.heard()) == []
    ann.say(message(HOT))
    house.tick()
    assert names(bob.heard()) == ["invite"]
    reason = "hot_routes: 5,000 messages/s across the mesh"
    assert house.reason(ann) == f"asked: {reason}"


@pytest.mark.req("SPK-5")
def test_a_finding_is_believed_for_as_long_as_it_says() -> None:
    house = LaneHouse()
    house.knowing("bob", HOT)
    ann = house.knowing("ann")
    find(house, found())
    house.tick(10)
    ann.say(message(HOT))
    house.tick()
    assert house.reason(ann).startswith("relayed: below threshold")
    assert len(house.lanes.findings) == 0


@pytest.mark.req("SPK-5")
def test_a_finding_does_not_bring_what_must_stay_to_lanes() -> None:
    house = LaneHouse()
    house.knowing("bob").say(subscribe(HOT, b"group"))
    ann = house.knowing("ann")
    find(house, found())
    ann.say(message(HOT))
    house.tick()
    assert house.reason(ann) == "relayed: has a queue group"


def test_no_finding_is_believed_for_longer_than_five_minutes() -> None:
    house = LaneHouse()
    find(house, found(ttl_s=1e9))
    house.wait(TTL_MAX_S)
    assert house.lanes.findings.get(HOT) is None


def test_findings_about_other_services_are_left_to_them() -> None:
    house = LaneHouse()
    find(house, found(service="other"))
    assert len(house.lanes.findings) == 0
    assert house.service.refused == {}


@pytest.mark.parametrize(
    "facts",
    [
        {"messages_s": "many"},
        {"messages_s": True},
        {"messages_s": -1.0},
        {"ttl_s": math.nan},
        {"ttl_s": 0},
        {"ttl_s": -math.inf},
        {"ttl_s": None},
        {"messages_s": math.nan},
        {"messages_s": [5000.0]},
        {"service": 5},
        {"subject": ""},
        {"subject": "a..b"},
        {"subject": "prices.*"},
        {"subject": 5},
    ],
)
def test_what_is_no_finding_is_counted_and_left_out(facts: dict[str, Any]) -> None:
    house = LaneHouse()
    find(house, found(**facts), found(subject="other"))
    assert sum(house.service.refused.values()) == 1
    assert len(house.lanes.findings) == 1


@pytest.mark.parametrize("name", ["service", "subject", "messages_s", "ttl_s"])
def test_a_row_that_lacks_what_is_needed_is_counted_and_left_out(name: str) -> None:
    house = LaneHouse()
    row = {key: value for key, value in FOUND.items() if key != name}
    find(house, Message.from_dict(row).encode(), found(subject="other"))
    assert sum(house.service.refused.values()) == 1
    assert len(house.lanes.findings) == 1


@pytest.mark.req("SPK-5")
def test_a_row_needs_no_more_than_what_is_read_of_it() -> None:
    house = LaneHouse()
    needed = ("service", "subject", "messages_s", "ttl_s")
    row = {name: FOUND[name] for name in needed}
    find(house, Message.from_dict(row | {"messages_s": 2**62, "ttl_s": math.inf}).encode())
    assert house.lanes.findings.get(HOT) is not None
    assert house.service.refused == {}


def test_a_body_that_is_no_message_is_counted() -> None:
    house = LaneHouse()
    find(house, b"\xff\xff")
    assert house.service.refused == {"BadMessage": 1}


def test_so_many_findings_are_remembered_and_the_first_to_end_go_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hot_subjects, "FINDINGS_MAX", 2)
    findings = Findings(LaneHouse().service)
    for subject, ttl_s in (("a", 5), ("b", 9), ("b", 8), ("c", 7)):
        findings.hear(Message.from_dict(FOUND | {"subject": subject, "ttl_s": ttl_s}))
    assert [findings.get(name) is not None for name in (b"a", b"b", b"c")] == [False, True, True]


def test_findings_that_nobody_reads_do_not_take_more_than_an_outbox_may() -> None:
    house = LaneHouse(Limits(outbox_bytes=65_536))
    house.lanes.findings.begin()
    body = found(padding=bytes(10_000))
    for _ in range(50):
        start = house.arena.put(encode(Kind.MESSAGE, HOT_ROUTES, body))
        Release(house.service).publish(start, house.arena.fill)
        house.flush()
    house.lanes.tick()
    assert house.lanes.findings.get(HOT) is not None


@pytest.mark.req("SPK-5")
def test_a_route_that_a_job_finds_hot_stays_direct_below_the_threshold() -> None:
    house = LaneHouse(idle_s=1)
    house.knowing("bob", HOT)
    ann = house.knowing("ann")
    find(house, found(ttl_s=100))
    heat(ann, count=1)
    assert house.lanes.heat(HOT, None).is_hot is False
    assert ann.peer.meter is not None
    assert house.lanes.heat(HOT, ann.peer.meter.flow(HOT, house.service.now_ns)).is_certain
