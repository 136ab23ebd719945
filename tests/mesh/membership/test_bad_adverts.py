"""Adverts that gateways should not say or pass on: refused, counted, and only the guilty is cut."""

from collections.abc import Callable

import msgspec
import pytest
from tests.mesh.gateways import wanted
from tests.mesh.impostor import Impostor
from tests.mesh.mesh import Net, address_of, admission_of, identity_of, meshed

from weft.errors import BadAdvert
from weft.mesh.interest.interest_set import digest_of
from weft.mesh.links.handshake import Admission, admission_mac
from weft.mesh.links.signing import verify
from weft.mesh.membership import advert as adverts
from weft.mesh.membership.advert import Advert
from weft.mesh.membership.gossip import ADVERTS_PER_S
from weft.mesh.protocol import AdvertWord, Delta, Goodbye, LinkReady, Summary
from weft.mesh.routing.forward_header import COUNT_AT, PLAIN, PlannedGateway, make
from weft.mesh.settings import Rules
from weft.wire.frames import Kind, encode


def prepared() -> tuple[Net, Impostor]:
    """Two gateways that are linked, and a member that will misbehave."""
    net = meshed(2)
    return net, Impostor(net)


def assert_mesh_goes_on(net: Net) -> None:
    """The honest gateways are still linked, and messages go between them."""
    net.wait(1)
    there = net[2].listen(b"still.there")
    net[1].local().publish(b"still.there", b"yes")
    net.carry()
    assert there.messages() == [b"yes"]
    assert net[1].link_to(net[2]) is not None


def resigned(advert: Advert, by: Admission) -> AdvertWord:
    said = msgspec.msgpack.encode(advert)
    return AdvertWord(said, by.identity.sign(b"weft advert 1\0" + said))


def test_a_member_is_met_by_its_advert() -> None:
    net, rogue = prepared()
    line = rogue.join(net[1])
    assert 99 in net[1].knows()
    assert 99 in net[2].knows()
    assert not line.is_over


@pytest.mark.parametrize("at", [0, 5, 40, -1])
def test_an_advert_that_was_changed_on_the_way_ends_the_link_that_brought_it(at: int) -> None:
    net, rogue = prepared()
    line = rogue.join(net[1])
    word = rogue.advert(name="changed")
    said = bytearray(word.said)
    said[at] ^= 1
    line.say(msgspec.structs.replace(word, said=bytes(said)))
    assert line.errors == ["BadAdvert"]
    assert net[1].refused["BadAdvert"] == 1
    assert_mesh_goes_on(net)


def test_an_advert_with_the_signature_of_another_is_forged() -> None:
    net, rogue = prepared()
    line = rogue.join(net[1])
    victim = net[2].fabric.members.own.advert
    line.say(resigned(msgspec.structs.replace(victim, sequence=10**6), rogue.admission))
    assert line.errors == ["BadAdvert"]
    member = net[1].fabric.members[net[2].node]
    assert member.advert.sequence < 10**6
    assert_mesh_goes_on(net)


def test_an_advert_with_another_key_than_it_was_signed_by_is_forged() -> None:
    net, rogue = prepared()
    line = rogue.join(net[1])
    word = rogue.advert(key=identity_of(98).key)
    line.say(word)
    assert line.errors == ["BadAdvert"]
    assert len(net[1].fabric.members) == 3


def test_an_advert_of_another_service_is_none() -> None:
    net, rogue = prepared()
    line = rogue.join(net[1])
    line.say(rogue.advert(service="traffic"))
    assert line.errors == ["BadAdvert"]


@pytest.mark.parametrize(
    "said", [b"", b"\xc1", b"\x90", b"\xff" * 100, msgspec.msgpack.encode([1] * 14)]
)
def test_what_is_no_advert_ends_the_link(said: bytes) -> None:
    net, rogue = prepared()
    line = rogue.join(net[1])
    line.say(AdvertWord(said, b""))
    assert line.errors == ["BadAdvert"]
    assert_mesh_goes_on(net)


def test_a_stranger_is_not_let_in_by_its_advert_and_whoever_told_of_it_stays() -> None:
    net, rogue = prepared()
    line = rogue.join(net[1])
    stranger = Impostor(net, 98, secret=b"guess")
    line.say(stranger.advert(links=(99,)))
    assert net[1].refused == {"NotAdmitted": 1}
    assert 98 not in net[1].knows()
    assert not line.is_over


def test_whoever_is_not_on_the_roster_is_not_let_in_by_its_advert() -> None:
    net = Net()
    keys = frozenset(identity_of(place).key for place in (1, 2, 99))
    for place in (1, 2):
        admission = Admission(identity_of(place), verify, b"", keys)
        net.begin(place, admission=admission)
    net.wait(1)
    rogue = Impostor(net, secret=b"")
    line = rogue.join(net[1])
    line.say(Impostor(net, 98, secret=b"").advert(links=(99,)))
    assert net[1].refused == {"NotAdmitted": 1}
    assert net[1].knows() == {2, 99}


def test_an_older_advert_changes_nothing() -> None:
    net, rogue = prepared()
    line = rogue.join(net[1])
    old = rogue.advert(name="old")
    line.say(rogue.advert(name="new", links=(1,)), old)
    assert net[1].fabric.members[rogue.node].advert.name == "new"
    line.say(rogue.advert(name="older life", incarnation=4))
    assert net[1].fabric.members[rogue.node].advert.name == "new"
    assert not line.is_over


def test_a_sequence_may_jump() -> None:
    net, rogue = prepared()
    line = rogue.join(net[1])
    line.say(rogue.advert(sequence=2**62 - 1, links=(1,), name="far"))
    line.say(rogue.advert(name="later life", incarnation=6, links=(1,)))
    assert net[2].fabric.members[rogue.node].advert.name == "later life"
    assert not line.is_over


def test_what_somebody_says_in_the_name_of_this_gateway_is_not_believed() -> None:
    net, rogue = prepared()
    line = rogue.join(net[1])
    own = net[1].fabric.members.own.advert
    line.say(resigned(msgspec.structs.replace(own, incarnation=2**62 - 1), rogue.admission))
    assert line.errors == ["BadAdvert"]
    net.wait(1)
    assert net[1].fabric.members.own.advert.incarnation == own.incarnation
    assert_mesh_goes_on(net)


@pytest.mark.req("MM-25")
def test_what_it_said_in_another_life_is_refuted_by_a_later_one() -> None:
    net, rogue = prepared()
    line = rogue.join(net[1])
    own = net[1].fabric.members.own.advert
    later = msgspec.structs.replace(own, incarnation=own.incarnation + 10**6, number=77, name="was")
    line.say(resigned(later, admission_of(1)))
    net.wait(1)
    assert net[1].fabric.members.own.advert.incarnation == own.incarnation + 10**6 + 1
    assert net[2].fabric.members[net[1].node].number == 1
    assert not line.is_over
    assert_mesh_goes_on(net)


def test_a_life_after_which_none_can_come_is_not_refuted() -> None:
    net, rogue = prepared()
    line = rogue.join(net[1])
    own = net[1].fabric.members.own.advert
    line.say(resigned(msgspec.structs.replace(own, incarnation=2**62 - 1), admission_of(1)))
    assert_mesh_goes_on(net)


def test_whoever_has_the_same_key_is_answered_once_in_a_second() -> None:
    net, rogue = prepared()
    line = rogue.join(net[1])
    for _ in range(40):
        own = net[1].fabric.members.own.advert
        later = msgspec.structs.replace(own, incarnation=own.incarnation + 1, number=77)
        line.say(resigned(later, admission_of(1)))
        net.wait(0.05)
    said = [adverts.read(word) for word in line.words(AdvertWord)]
    lives = {advert.incarnation for advert in said if advert.number == 1}
    assert len(lives) <= 4
    assert net[1].refused["CopiedKey"] > 1


def test_the_number_of_another_gateway_cannot_be_had() -> None:
    net, rogue = prepared()
    line = rogue.join(net[1])
    other = Impostor(net, 98)
    line.say(other.advert(number=2, links=(99,)), other.advert(number=1, links=(99,)))
    assert net[1].refused == {"SameNumber": 2}
    assert net[1].fabric.members.numbered(2) is net[1].fabric.members[net[2].node]
    assert not line.is_over
    assert_mesh_goes_on(net)


def test_a_link_cannot_be_had_in_the_number_of_another_gateway() -> None:
    net = meshed(3)
    net[2].listen(b"secret")
    line = Impostor(net, number=2).dial(net[1])
    assert line.errors == ["SameNumber"]
    assert net[1].refused == {"SameNumber": 1}
    assert_mesh_goes_on(net)


def test_a_link_that_was_given_another_number_than_its_advert_has_carries_nothing() -> None:
    net = meshed(1)
    rogue = Impostor(net, number=2)
    line = rogue.join(net[1], number=99)
    assert not net[1].knows() & {2, 99}
    net.begin(3)
    net.begin(2, Rules(join=(address_of(3),)))
    net.cut(1, 2)
    net.wait(3)
    assert line.errors == ["SameNumber"]
    there = net[2].listen(b"secret")
    net[1].local().publish(b"secret", b"x")
    net.carry()
    assert there.messages() == [b"x"]
    assert line.envelopes == 0


def test_a_gateway_has_one_number_in_each_life() -> None:
    net, rogue = prepared()
    line = rogue.join(net[1])
    for number in range(100, 110):
        line.say(rogue.advert(number=number, links=(1,)))
    assert net[1].refused == {"OtherNumber": 10}
    assert net[1].fabric.members[rogue.node].number == 99


def test_more_adverts_than_anyone_needs_are_not_looked_at() -> None:
    net, rogue = prepared()
    line = rogue.join(net[1])
    net.wait(2)
    line.say(*(rogue.advert(links=(1,)) for _ in range(3 * ADVERTS_PER_S)))
    passed_on = net[2].fabric.members[rogue.node].advert.sequence
    assert net[1].refused["TooManyAdverts"] == 2 * ADVERTS_PER_S
    assert passed_on == rogue.sequence - 2 * ADVERTS_PER_S
    assert not line.is_over
    net.wait(1)
    line.say(rogue.advert(links=(1,)))
    assert net[1].fabric.members[rogue.node].advert.sequence == rogue.sequence


def test_more_gateways_than_a_mesh_has_are_not_taken_note_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("weft.mesh.membership.gossip.MEMBERS_MAX", 4)
    net, rogue = prepared()
    line = rogue.join(net[1])
    for place in (50, 51, 52):
        line.say(Impostor(net, place).advert())
    assert net[1].refused == {"TooManyGateways": 2}
    assert len(net[1].fabric.members) == 4
    assert_mesh_goes_on(net)


@pytest.mark.parametrize("life", [5, 6])
def test_whoever_said_that_it_leaves_may_be_back_with_the_same_number(life: int) -> None:
    net, rogue = prepared()
    line = rogue.join(net[1])
    weather, rain = wanted(b"weather"), wanted(b"rain")
    line.say(rogue.advert(Delta((weather,)), version=1, digest=digest_of([weather]), links=(1,)))
    line.say(rogue.advert(links=(1,), is_leaving=True, version=1, digest=digest_of([weather])))
    assert 99 not in net[1].knows()
    rogue.incarnation = life
    line.say(rogue.advert(links=(1,), version=0, digest=0))
    line.say(rogue.advert(Delta((rain,)), links=(1,), version=1, digest=digest_of([rain])))
    net.wait(0.5)
    assert 99 in net[2].knows()
    net[2].local().publish(b"rain", b"x")
    net[2].local().publish(b"weather", b"x")
    net.carry()
    assert line.envelopes == 1
    assert not line.is_over


@pytest.mark.parametrize("say", [lambda line: line.close(), lambda line: line.say(Goodbye())])
def test_a_gateway_that_ends_is_lost_and_then_forgotten(say: Callable[[object], None]) -> None:
    net = meshed(2, Rules(join=(address_of(1),), forget_s=3))
    rogue = Impostor(net)
    line = rogue.join(net[1])
    del net.sites[rogue.address]
    say(line)
    net.wait(1)
    assert 99 not in net[1].knows() | net[2].knows()
    assert rogue.node in {member.node for member in net[1].fabric.members}
    net.wait(4)
    assert rogue.node not in {member.node for member in net[1].fabric.members}
    assert rogue.node not in {member.node for member in net[2].fabric.members}


def test_a_replayed_advert_of_one_that_was_forgotten_is_forgotten_again() -> None:
    net = meshed(2, Rules(join=(address_of(1),), forget_s=3))
    rogue, ghost = Impostor(net), Impostor(net, 98)
    del net.sites[ghost.address]
    line = rogue.join(net[1])
    old = ghost.advert(links=(1,))
    line.say(old)
    net.wait(5)
    assert len(net[1].fabric.members) == 3
    line.say(old)
    assert 98 not in net[1].knows()
    net.wait(5)
    assert len(net[1].fabric.members) == 3


def test_a_loss_of_any_length_can_be_told() -> None:
    net, rogue = prepared()
    line = rogue.join(net[1])
    word = Impostor(net, 98).advert()
    line.say(msgspec.structs.replace(word, lost_ms=2**62 - 1))
    net.wait(2)
    assert len(net[1].fabric.members) == 3
    assert not line.is_over


def test_an_advert_is_checked_by_whoever_it_comes_to() -> None:
    admission = admission_of(1)
    rogue = Impostor(Net())
    word = rogue.advert(admission=admission_mac(b"guess", rogue.admission.identity.key))
    with pytest.raises(BadAdvert):
        adverts.check(word, adverts.read(word), admission, "traffic")


def test_news_before_everything_is_known_do_no_harm() -> None:
    net, rogue = prepared()
    line = rogue.dial(net[1])
    weather = wanted(b"weather")
    line.say(
        rogue.advert(Delta((weather,)), version=7, digest=digest_of([weather]), links=(1,)),
        LinkReady(),
        LinkReady(),
        Summary((), False),
        rogue.snapshot(7, weather),
        Summary((), True),
    )
    net.wait(0.5)
    assert 99 in net[2].knows()
    net[2].local().publish(b"weather", b"x")
    net.carry()
    assert line.envelopes == 1


def test_nobody_can_claim_a_link_alone_and_speak_for_whom_it_leads_to() -> None:
    net, rogue = prepared()
    line = rogue.join(net[1])
    there = net[1].listen(b"a")
    line.say(rogue.advert(links=(1, 2)))
    net.wait(1)
    header = make(PLAIN, b"", [2, rogue.number], [PlannedGateway(1, 0, True)])
    header[COUNT_AT] = 1
    message = bytearray(encode(Kind.MESSAGE, b"a", b"false"))
    message[8] = 2
    line.send(header, message)
    assert there.messages() == []
    assert net[1].refused == {"ForgedPath": 1}
    assert_mesh_goes_on(net)
