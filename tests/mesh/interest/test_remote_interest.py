"""How gateways follow what others want: by changes, by snapshots, and not by what is false."""

import pytest
from tests.mesh.gateways import wanted
from tests.mesh.impostor import Impostor, Line
from tests.mesh.mesh import Net, meshed

from weft.mesh.interest.interest_set import WANTED_MAX, digest_of
from weft.mesh.links.link import OUTBOX_BYTES
from weft.mesh.protocol import Delta, Goodbye, InterestEntry, LinkReady, Snapshot, Summary, Want

WEATHER, RAIN, SNOW = wanted(b"weather"), wanted(b"rain"), wanted(b"snow", b"g")


def prepared() -> tuple[Net, Impostor, Line]:
    net = meshed(2)
    rogue = Impostor(net)
    return net, rogue, rogue.join(net[1])


def wants(net: Net, place: int, rogue: Impostor) -> list[InterestEntry]:
    """What a gateway believes that somebody wants."""
    return net[place].fabric.members[rogue.node].wanted.sorted()


@pytest.mark.req("MM-22")
def test_interest_is_told_to_all_and_withdrawn_from_all() -> None:
    net = meshed(3)
    there = net[3].listen(b"weather.*")
    publisher = net[1].local()
    publisher.publish(b"weather.paris", b"1")
    net.carry()
    assert there.messages() == [b"1"]
    sent = net[1].traffic.counts.sent
    there.gateway.service.peers[there.peer.number].end(None)
    net.wait(0.5)
    publisher.publish(b"weather.paris", b"2")
    net.carry()
    assert net[1].traffic.counts.sent == sent


@pytest.mark.req("MM-25")
def test_a_gateway_tells_what_is_wanted_there_although_others_want_the_same() -> None:
    net = meshed(3)
    first, second = net[2].listen(b"weather"), net[3].listen(b"weather")
    net.kill(2)
    net[1].local().publish(b"weather", b"1")
    net.carry()
    assert first.messages() == []
    assert second.messages() == [b"1"]


def test_a_newcomer_learns_more_than_fits_into_a_link_at_once() -> None:
    net = meshed(3)
    for place in (1, 2, 3):
        net[place].local(*long_patterns(place, 15_500))
        net[place].local(*long_patterns(place, 11_500), group=b"g")
    net.wait(3)
    known = [net[place].fabric.members.own.wanted for place in (1, 2, 3)]
    assert sum(each.bytes for each in known) > OUTBOX_BYTES
    newcomer = net.begin(4)
    net.wait(3)
    assert net.is_whole()
    told = [newcomer.fabric.members[net[place].node].wanted for place in (1, 2, 3)]
    assert [each.digest for each in told] == [each.digest for each in known]


def long_patterns(place: int, count: int) -> list[bytes]:
    """Patterns that take up much room."""
    return [b"%d.%d." % (place, each) + b".".join([b"x" * 100] * 2) for each in range(count)]


def test_a_change_is_followed_and_passed_on() -> None:
    net, rogue, line = prepared()
    delta = Delta((WEATHER, SNOW))
    line.say(rogue.advert(delta, version=1, digest=digest_of([WEATHER, SNOW]), links=(1,)))
    assert wants(net, 1, rogue) == wants(net, 2, rogue) == [SNOW, WEATHER]
    delta = Delta((RAIN,), (WEATHER,))
    line.say(rogue.advert(delta, version=2, digest=digest_of([RAIN, SNOW]), links=(1,)))
    assert wants(net, 1, rogue) == wants(net, 2, rogue) == [RAIN, SNOW]
    assert net[1].refused == {}


def test_a_change_that_does_not_lead_to_what_was_signed_changes_nothing() -> None:
    net, rogue, line = prepared()
    line.say(rogue.advert(Delta((WEATHER,)), version=1, digest=digest_of([RAIN]), links=(1,)))
    assert wants(net, 1, rogue) == []
    assert net[1].refused == {"BadInterest": 1}
    # Who passes it on does not tell others what it did not believe.
    assert net[2].refused == {}
    assert line.words(Want) == [Want(rogue.node)]
    line.say(rogue.snapshot(1, RAIN))
    assert wants(net, 1, rogue) == wants(net, 2, rogue) == [RAIN]
    assert not line.is_over


def test_a_snapshot_that_is_not_what_was_signed_counts_for_nothing() -> None:
    net, rogue, line = prepared()
    line.say(rogue.advert(version=7, digest=digest_of([RAIN]), links=(1,)))
    line.say(rogue.snapshot(7, WEATHER), rogue.snapshot(6, RAIN), rogue.snapshot(8, RAIN))
    assert wants(net, 1, rogue) == []
    assert net[1].refused == {"BadInterest": 1}
    line.say(rogue.snapshot(7, RAIN))
    assert wants(net, 1, rogue) == [RAIN]
    line.say(rogue.snapshot(7, WEATHER))
    assert wants(net, 1, rogue) == [RAIN]


def test_the_same_version_with_another_digest_is_asked_for() -> None:
    net, rogue, line = prepared()
    line.say(rogue.advert(Delta((RAIN,)), version=1, digest=digest_of([RAIN]), links=(1,)))
    line.say(rogue.advert(version=1, digest=digest_of([WEATHER]), links=(1,)))
    assert line.words(Want) == [Want(rogue.node)]
    line.say(rogue.snapshot(1, WEATHER))
    assert wants(net, 2, rogue) == [WEATHER]


def test_parts_of_a_snapshot_come_one_after_the_other() -> None:
    net, rogue, line = prepared()
    line.say(rogue.advert(version=7, digest=digest_of([RAIN, SNOW]), links=(1,)))
    line.say(
        rogue.snapshot(7, SNOW, part=1),
        rogue.snapshot(7, RAIN, part=0, is_last=False),
        rogue.snapshot(7, SNOW, part=2),
    )
    assert wants(net, 1, rogue) == []
    line.say(
        rogue.snapshot(7, RAIN, part=0, is_last=False),
        rogue.snapshot(7, SNOW, part=1),
    )
    assert wants(net, 1, rogue) == [RAIN, SNOW]


def test_of_snapshots_that_are_not_complete_one_is_kept() -> None:
    net, rogue, line = prepared()
    line.say(Snapshot(net[2].node, 7, 0, False, (RAIN,)), rogue.snapshot(7, RAIN, is_last=False))
    link = next(link for link in net[1].fabric.links.values() if link.node == rogue.node)
    assert link.parts is not None
    assert link.parts.node == rogue.node
    line.say(Snapshot(net[1].node, 7, 0, True, (RAIN,)), Snapshot(bytes(16), 7, 0, True, ()))
    assert not line.is_over


def test_a_snapshot_of_more_than_anyone_may_want_ends_the_link() -> None:
    net, rogue, line = prepared()
    line.say(rogue.advert(version=7, digest=1, links=(1,)))
    many = [tuple(wanted(b"%d.%d" % (part, at)) for at in range(10_000)) for part in range(11)]
    for part, each in enumerate(many):
        line.say(rogue.snapshot(7, *each, part=part, is_last=False))
    assert sum(map(len, many)) > WANTED_MAX
    assert line.errors == ["BadWord"]
    there = net[2].listen(b"a")
    net[1].local().publish(b"a", b"x")
    net.carry()
    assert there.messages() == [b"x"]


def test_a_change_beyond_what_anyone_may_want_is_not_followed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("weft.mesh.interest.interest_set.WANTED_MAX", 2)
    net, rogue, line = prepared()
    line.say(
        rogue.advert(
            Delta((WEATHER, RAIN, SNOW)),
            version=1,
            digest=digest_of([WEATHER, RAIN, SNOW]),
            links=(1,),
        )
    )
    assert net[1].refused == {"TooMuchInterest": 1}
    assert net[2].refused == {}
    assert wants(net, 2, rogue) == []
    assert not line.is_over


def test_patterns_of_the_system_are_nobody_elses_business() -> None:
    net, rogue, line = prepared()
    line.say(rogue.advert(Delta((wanted(b"_INBOX.>"),)), version=1, links=(1,)))
    assert line.errors == ["BadWord"]
    assert wants(net, 1, rogue) == wants(net, 2, rogue) == []


def test_whoever_asked_before_it_was_known_is_answered_when_it_is() -> None:
    net, rogue, line = prepared()
    other = Impostor(net, 98)
    asker = other.join(net[1])
    line.say(rogue.advert(version=3, digest=digest_of([RAIN]), links=(1,)))
    asker.heard.clear()
    asker.say(Want(rogue.node))
    assert asker.words(Snapshot) == []
    line.say(rogue.snapshot(3, RAIN))
    assert asker.words(Snapshot) == [rogue.snapshot(3, RAIN)]


def test_whoever_asked_and_left_is_not_waited_for() -> None:
    net, rogue, line = prepared()
    asker = Impostor(net, 98).join(net[1])
    line.say(rogue.advert(version=3, digest=digest_of([RAIN]), links=(1,)))
    asker.say(Want(rogue.node), Goodbye())
    assert net[1].fabric.members[rogue.node].askers <= set(net[1].fabric.links)
    line.say(rogue.snapshot(3, RAIN))
    assert wants(net, 1, rogue) == [RAIN]


def test_what_was_asked_for_and_did_not_come_is_asked_for_again() -> None:
    net, rogue, line = prepared()
    line.say(rogue.advert(version=3, digest=digest_of([RAIN]), links=(1,)))
    net.wait(8)
    asked = line.words(Want)
    assert len(asked) > 2
    assert set(asked) == {Want(rogue.node)}


def test_one_whose_interest_changes_faster_than_answers_come_is_followed() -> None:
    net, rogue, line = prepared()
    all_wanted = [wanted(b"first")]
    line.say(rogue.advert(version=10, digest=digest_of(all_wanted), links=(1,)))
    assert line.words(Want) == [Want(rogue.node)]
    asked = rogue.snapshot(10, *all_wanted)
    for version in range(11, 20):
        new = wanted(b"new.%d" % version)
        all_wanted.append(new)
        line.say(
            rogue.advert(Delta((new,)), version=version, digest=digest_of(all_wanted), links=(1,))
        )
    # The answer to the question is as old as the question.
    line.say(asked)
    assert wants(net, 1, rogue) == sorted(all_wanted)
    assert wants(net, 2, rogue) == sorted(all_wanted)


def test_a_change_too_large_to_be_kept_is_asked_for() -> None:
    net, rogue, line = prepared()
    line.say(rogue.advert(version=10, digest=digest_of([RAIN]), links=(1,)))
    large = tuple(wanted(b"%d" % each + b"x" * 100) for each in range(200))
    digest = digest_of([RAIN, *large])
    line.say(rogue.advert(Delta(large), version=11, digest=digest, links=(1,)))
    assert net[1].fabric.members[rogue.node].early == {}
    line.say(rogue.snapshot(10, RAIN))
    assert wants(net, 1, rogue) == []
    line.say(rogue.snapshot(11, RAIN, *large))
    assert len(wants(net, 1, rogue)) == 201


def test_changes_are_not_kept_for_ever() -> None:
    net, rogue, line = prepared()
    for version in range(2, 99):
        line.say(rogue.advert(Delta((RAIN,)), version=version, digest=1, links=(1,)))
    assert len(net[1].fabric.members[rogue.node].early) <= 64


@pytest.mark.req("MM-25")
def test_a_late_gateway_learns_what_all_want() -> None:
    net = meshed(3)
    there = [net[place].listen(b"weather.%d" % place) for place in (1, 2, 3)]
    net.begin(4)
    net.wait(1)
    for place in (1, 2, 3):
        net[4].local().publish(b"weather.%d" % place, b"%d" % place)
    net.carry()
    assert [each.messages() for each in there] == [[b"1"], [b"2"], [b"3"]]


@pytest.mark.req("MM-25")
@pytest.mark.parametrize("skew_s", [0, -3600, 3600])
def test_a_gateway_that_begins_again_is_known_as_it_is_now(skew_s: int) -> None:
    net = meshed(3)
    net[3].listen(b"old")
    net.kill(3)
    net.wait(0.2)
    net.skew_ns[3] = skew_s * 1_000_000_000
    net.begin(3, number=33)
    net.wait(2)
    there = net[3].listen(b"new")
    sent = net[1].traffic.counts.sent
    net[1].local().publish(b"old", b"1")
    net.carry()
    assert net[1].traffic.counts.sent == sent
    net[1].local().publish(b"new", b"2")
    net.carry()
    assert there.messages() == [b"2"]
    assert net[1].knows() == {2, 33}


def test_what_a_gateway_wanted_before_it_left_is_not_wanted_any_more() -> None:
    net, rogue, line = prepared()
    line.say(rogue.advert(Delta((RAIN,)), version=1, digest=digest_of([RAIN]), links=(1,)))
    line.say(rogue.advert(version=1, digest=digest_of([RAIN]), is_leaving=True))
    net[1].local().publish(b"rain", b"x")
    net.carry()
    assert line.envelopes == 0


def test_a_link_that_is_being_told_everything_is_not_asked() -> None:
    net = meshed(1)
    rogue = Impostor(net)
    line = rogue.dial(net[1])
    line.say(rogue.advert(version=2, digest=digest_of([RAIN]), links=(1,)))
    assert line.words(Want) == []
    line.say(rogue.snapshot(2, RAIN), Summary((), True), LinkReady())
    assert wants(net, 1, rogue) == [RAIN]
