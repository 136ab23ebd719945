"""Addresses that may be dialled, and when."""

from random import Random

import pytest

from weft.mesh.links.dial_targets import (
    FIRST_PAUSE_NS,
    LONGEST_PAUSE_NS,
    OFFER_NS,
    REMEMBER_NS,
    REMEMBERED_PAUSE_NS,
    TARGETS_MAX,
    Targets,
    is_address,
)


def targets() -> Targets:
    return Targets(Random(1))


def test_what_was_configured_is_never_forgotten() -> None:
    found = targets()
    found.fix("a:1")
    found.expire(10 * REMEMBER_NS)
    assert [each.address for each in found] == ["a:1"]


def test_what_was_offered_is_forgotten_after_a_while() -> None:
    found = targets()
    found.offer("a:1", 0)
    found.expire(OFFER_NS - 1)
    assert [each.address for each in found] == ["a:1"]
    found.expire(OFFER_NS)
    assert list(found) == []


def test_an_offer_does_not_shorten_another() -> None:
    found = targets()
    found.remember("a:1", 0)
    assert found.offer("a:1", 0).until_ns == REMEMBER_NS


def test_what_is_being_dialled_is_not_forgotten() -> None:
    found = targets()
    found.dialled(found.at("a:1"))
    found.expire(1)
    assert found.dialling == 1


def test_pauses_grow_and_differ_by_chance() -> None:
    found = targets()
    target = found.offer("a:1", 0)
    pauses = []
    now_ns = 0
    for _ in range(12):
        found.failed(target, "no", now_ns)
        pauses.append(target.next_ns - now_ns)
        now_ns = target.next_ns
    assert FIRST_PAUSE_NS // 2 <= pauses[0] <= FIRST_PAUSE_NS
    assert LONGEST_PAUSE_NS // 2 <= pauses[-1] <= LONGEST_PAUSE_NS
    assert len(set(pauses)) == len(pauses)
    # Whoever was reached may refuse: pauses begin anew once there is a link.
    found.reached(target, b"node")
    found.settled(target)
    found.failed(target, "no", now_ns)
    assert target.next_ns - now_ns <= FIRST_PAUSE_NS


def test_a_failure_does_not_shorten_a_pause_that_was_meant() -> None:
    found = targets()
    target = found.offer("a:1", 0)
    target.next_ns = 10**12
    found.failed(target, "no", 0)
    assert target.next_ns == 10**12
    found.failed(target, "no", 0, least_ns=10**13)
    assert target.next_ns == 10**13


def test_whoever_was_forgotten_is_tried_seldom_unless_it_was_configured() -> None:
    found = targets()
    found.fix("fixed:1")
    for address in ("fixed:1", "other:1"):
        found.remember(address, 0)
    assert found.at("fixed:1").longest_ns == LONGEST_PAUSE_NS
    assert found.at("other:1").longest_ns == REMEMBERED_PAUSE_NS


def test_it_is_due_after_its_pause_and_not_while_it_is_dialled() -> None:
    found = targets()
    target = found.offer("a:1", 0)
    assert found.is_due(target, 0)
    found.dialled(target)
    assert not found.is_due(target, 0)
    found.failed(target, "no", 0)
    assert not found.is_due(target, 0)
    assert found.is_due(target, target.next_ns)


def test_there_are_no_more_than_so_many_and_the_first_to_be_forgotten_make_room() -> None:
    found = targets()
    found.fix("fixed:1")
    found.remember("remembered:1", 0)
    for number in range(2 * TARGETS_MAX):
        found.offer(f"junk-{number}:1", number)
    assert len(list(found)) == TARGETS_MAX
    assert {"fixed:1", "remembered:1"} <= {each.address for each in found}


def test_what_was_configured_finds_room_beyond_the_bound() -> None:
    found = targets()
    for number in range(TARGETS_MAX + 1):
        found.fix(f"fixed-{number}:1")
    assert len(list(found)) == TARGETS_MAX + 1


@pytest.mark.parametrize("text", ["a:1", "[::1]:7411", "tls://a.example:65535", "10.0.0.1:80"])
def test_a_host_and_a_port_are_an_address(text: str) -> None:
    assert is_address(text)


@pytest.mark.parametrize(
    "text",
    ["", "a", ":1", "a:", "a:0", "a:65536", "a:-1", "a:1x", "a:²", "a b:1", "a\n:1", "a:9999999"],
)
def test_anything_else_is_none(text: str) -> None:
    assert not is_address(text)
