"""Words that gateways should not say, or not then: refused, and only the guilty is cut."""

import pytest
from tests.mesh.impostor import Impostor, Line
from tests.mesh.mesh import Net, address_of, meshed

from weft.mesh.links.dial_targets import DIALS_MAX, TARGETS_MAX
from weft.mesh.protocol import (
    SUMMARY_MAX,
    WANTED_ROOM_BYTES,
    WORD_MAX_BYTES,
    Ack,
    AdvertWord,
    Delta,
    Gone,
    Goodbye,
    HighWaterMark,
    InterestEntry,
    Known,
    LinkReady,
    LostRanges,
    Nack,
    Ping,
    Pong,
    Probe,
    Redirect,
    RegistrationConfirmed,
    Snapshot,
    Summary,
    Want,
    Word,
    frame_of,
)
from weft.mesh.protocol import encode as encode_word
from weft.mesh.routing.forward_header import PLAIN, PlannedGateway, make
from weft.mesh.settings import Rules
from weft.wire.frames import Kind, encode

LAST = (1 << 64) - 1


def prepared() -> tuple[Net, Line]:
    """Two gateways, and a member that is linked with the first and will misbehave."""
    net = meshed(2)
    return net, Impostor(net).join(net[1])


def assert_mesh_goes_on(net: Net) -> None:
    there = net[2].listen(b"still.there")
    net[1].local().publish(b"still.there", b"yes")
    net.carry()
    assert there.messages() == [b"yes"]


def links_of(net: Net) -> list[int]:
    """The connections between the two honest gateways."""
    return [id(pipe) for pipe in net.between(1, 2)]


@pytest.mark.parametrize("body", [b"", b"\xc1", b"\x93\x01", b"\x91\x63", b"\xff" * 1000])
def test_what_is_no_word_ends_the_link(body: bytes) -> None:
    net, line = prepared()
    line.send(encode(Kind.FABRIC, body=body))
    assert line.errors == ["BadWord"]
    assert net[1].refused == {"BadWord": 1}
    assert_mesh_goes_on(net)


@pytest.mark.parametrize(
    "word",
    [HighWaterMark(1), Ack(1), Nack(0, 1), Gone(()), LostRanges(()), Probe(bytes(16), "a:1")],
)
def test_what_is_said_from_afar_is_not_said_by_a_link(word: Word) -> None:
    net, line = prepared()
    line.say(word)
    assert line.errors == ["BadWord"]
    assert_mesh_goes_on(net)


@pytest.mark.parametrize(
    "frame",
    [
        encode(Kind.FABRIC, body=b"\xc1"),
        encode(Kind.MESSAGE, b"a", b"x"),
        frame_of(LinkReady()),
        frame_of(Goodbye()),
        frame_of(Redirect(("10.9.9.9:1",))),
        frame_of(AdvertWord(b"", b"")),
        frame_of(Snapshot(bytes(16), 1, 0, True, ())),
    ],
    ids=["none", "message", "ready", "goodbye", "redirect", "advert", "snapshot"],
)
def test_whoever_passes_on_a_bad_word_is_not_to_blame(frame: bytes) -> None:
    net, line = prepared()
    before = links_of(net)
    line.route(1, frame, [99], [PlannedGateway(2, 0, True)])
    assert net[2].refused == {"BadWord": 1}
    assert links_of(net) == before
    assert not line.is_over
    assert_mesh_goes_on(net)


def test_whoever_passes_on_a_tree_that_contradicts_itself_is_not_to_blame() -> None:
    net, line = prepared()
    before = links_of(net)
    line.route(
        1,
        frame_of(HighWaterMark(1)),
        [99],
        [PlannedGateway(2, 1, False), PlannedGateway(3, 99, True)],
    )
    assert net[2].refused == {"BadTree": 1}
    assert links_of(net) == before
    assert_mesh_goes_on(net)


@pytest.mark.parametrize(
    "word",
    [
        HighWaterMark(LAST),
        HighWaterMark(LAST, is_last=True),
        HighWaterMark((1 << 48) - 1),
        Ack(LAST),
        Nack(LAST, LAST),
        Nack(5, 0),
        Gone(((0, LAST),)),
        Gone(((LAST, 0),)),
        LostRanges(((0, LAST),)),
        LostRanges(((LAST, 0), (LAST, LAST))),
    ],
)
def test_numbers_at_the_end_of_their_range_do_no_harm(word: Word) -> None:
    net, line = prepared()
    net[1].listen(b"a")
    line.route(1, frame_of(word), [99])
    net.wait(3)
    assert not line.is_over
    assert_mesh_goes_on(net)


@pytest.mark.parametrize("first", [LAST, LAST - 1, (1 << 48) - 1])
def test_frames_with_the_last_numbers_there_are_do_no_harm(first: int) -> None:
    net, line = prepared()
    there = net[1].listen(b"a")
    frame = bytearray(encode(Kind.MESSAGE, b"a", b"x"))
    frame[8:12] = (99).to_bytes(4, "little")
    header = make(PLAIN, b"", [99], [PlannedGateway(1, 0, True, first)])
    header[12] = 2
    line.send(header, frame, frame)
    line.route(1, frame_of(HighWaterMark(1)), [99])
    net.wait(3)
    assert len(there.messages()) <= 2
    assert_mesh_goes_on(net)


def test_a_probe_for_one_that_is_there_leads_to_nothing() -> None:
    net, line = prepared()
    before = links_of(net)
    line.route(1, frame_of(Probe(net[2].node, net[2].address)), [99])
    net.wait(2)
    assert links_of(net) == before


def test_a_probe_cannot_point_a_gateway_at_a_stranger() -> None:
    net, line = prepared()
    stranger = Impostor(net, 50)
    for node in (net[2].node, stranger.node, bytes(16)):
        line.route(1, frame_of(Probe(node, stranger.address)), [99])
    net.wait(1)
    assert stranger.lines == []


def test_a_probe_for_one_that_was_lost_has_it_dialled() -> None:
    net = meshed(3)
    net.cut(2, 3)
    line = Impostor(net).join(net[1])
    net.kill(3, is_dark=True)
    net.wait(8)
    assert 3 not in net[1].knows()
    seen = Impostor(net, 3)
    line.route(1, frame_of(Probe(seen.node, seen.address)), [99])
    net.wait(5)
    assert seen.lines != []


def test_junk_addresses_take_neither_memory_nor_the_places_of_others() -> None:
    net = meshed(2, Rules(join=(address_of(1),)))
    rogue = Impostor(net)
    net[1].fabric.dialling.targets.offer(rogue.address, net.now_ns)
    net.wait(1)
    line = rogue.lines[0]
    line.say(rogue.advert(links=(1,)), Summary((), True), LinkReady())
    for turn in range(60):
        line.say(Redirect(tuple(f"junk-{turn}-{each}.example:1" for each in range(16))))
    assert not line.is_over
    assert len(list(net[1].fabric.dialling.targets)) <= TARGETS_MAX
    due = [target for target in net[1].fabric.dialling.targets if target.is_dialling]
    assert len(due) <= DIALS_MAX
    assert_mesh_goes_on(net)


@pytest.mark.parametrize(
    "address", ["", " ", "nonsense", "a:b", "a:0", "a:70000", ":7411", "a b:1", "a:1\n", "\x00:1"]
)
def test_what_is_no_address_is_not_dialled(address: str) -> None:
    net = meshed(1)
    rogue = Impostor(net)
    net[1].fabric.dialling.targets.offer(rogue.address, net.now_ns)
    net.wait(1)
    rogue.lines[0].say(Redirect((address,)))
    assert address not in [target.address for target in net[1].fabric.dialling.targets]
    assert net[1].refused == {"BadAddress": 1}
    assert not rogue.lines[0].is_over


@pytest.mark.parametrize("word", [Redirect(("a:1",)), RegistrationConfirmed(("a:1",))])
def test_only_whoever_was_dialled_says_where_to_go(word: Word) -> None:
    net, line = prepared()
    line.say(word)
    assert line.errors == ["BadWord"]
    assert "a:1" not in [target.address for target in net[1].fabric.dialling.targets]


@pytest.mark.parametrize(
    "word",
    [
        AdvertWord(b"", b""),
        Summary((), True),
        Want(bytes(16)),
        LinkReady(),
        Redirect(()),
        Snapshot(bytes(16), 0, 0, True, ()),
        HighWaterMark(1),
        RegistrationConfirmed(("a:1",)),
    ],
)
def test_whoever_only_registers_says_nothing_else(word: Word) -> None:
    net = meshed(2)
    rogue = Impostor(net)
    rogue.is_registering = True
    line = rogue.dial(net[1])
    assert line.words(RegistrationConfirmed) == [
        RegistrationConfirmed((address_of(1), address_of(2)))
    ]
    line.say(word)
    assert line.errors == ["BadWord"]
    net.wait(0.1)
    assert net[1].fabric.registry.addresses == []
    assert_mesh_goes_on(net)


@pytest.mark.parametrize("word", [Ping(1, 0), Pong(5), Pong(0), Goodbye(is_leaving=True)])
def test_a_registration_is_kept_up_and_ended_like_a_link(word: Word) -> None:
    net = meshed(1)
    rogue = Impostor(net)
    rogue.is_registering = True
    line = rogue.dial(net[1])
    line.say(word)
    assert line.errors == []
    assert line.is_over == isinstance(word, Goodbye)


def test_a_want_for_the_unknown_has_no_answer() -> None:
    _, line = prepared()
    line.say(Want(bytes(16)))
    assert line.words(Snapshot) == []
    assert not line.is_over


def test_whoever_asks_again_and_again_is_answered_now_and_then() -> None:
    net, line = prepared()
    net[2].listen(b"a")
    line.heard.clear()
    line.say(*[Want(net[2].node)] * 100)
    assert len(line.words(Snapshot)) == 1
    assert net[1].refused == {"TooManyWants": 99}
    net.wait(0.5)
    line.say(Want(net[2].node))
    assert len(line.words(Snapshot)) == 2


def test_summaries_without_an_end_are_answered_now_and_then() -> None:
    net, line = prepared()
    net.wait(1)
    line.heard.clear()
    line.say(*[Summary((), True)] * 50)
    assert len(line.words(AdvertWord)) <= 3
    assert net[1].refused == {"TooManySummaries": 49}


def test_a_summary_of_more_than_there_can_be_ends_the_link() -> None:
    net, line = prepared()
    for part in range(9):
        first = part * SUMMARY_MAX
        entries = [
            Known(at.to_bytes(16, "big"), 1, 1, 1) for at in range(first, first + SUMMARY_MAX)
        ]
        line.say(Summary(tuple(entries), False))
    assert line.errors == ["BadWord"]
    assert_mesh_goes_on(net)


def test_a_digest_that_is_always_another_is_compared_now_and_then() -> None:
    net, line = prepared()
    net.wait(2)
    line.heard.clear()
    line.say(*(Ping(token, 7) for token in range(1, 200)))
    assert len(line.words(Pong)) == 199
    assert len(line.words(Summary)) <= 1


def test_answers_to_what_was_not_asked_count_for_nothing() -> None:
    net, line = prepared()
    net.wait(1)
    link = next(link for link in net[1].fabric.links.values() if link.number == 99)
    before = link.rtt_ns
    line.say(Pong(0), Pong(12345))
    assert link.rtt_ns == before


@pytest.mark.parametrize("kind", [Kind.LINK, Kind.CONNECT, Kind.SUBSCRIBE, Kind.MESSAGE])
def test_a_link_is_no_connection_of_a_client(kind: Kind) -> None:
    net, line = prepared()
    line.send(encode(kind, b"weather"))
    assert line.errors == ["UnexpectedFrame"]
    assert_mesh_goes_on(net)


def test_a_change_that_leaves_no_room_in_a_word_is_not_passed_on() -> None:
    net, line = prepared()
    rogue = Impostor(net, 98)
    many = tuple(InterestEntry(b"%06d" % each + b"x" * 240) for each in range(2040))
    word = rogue.advert(Delta(many), version=1, links=(99,))
    assert WANTED_ROOM_BYTES < len(encode_word(word)) <= WORD_MAX_BYTES
    before = links_of(net)
    line.say(word)
    assert line.errors == ["BadWord"]
    assert links_of(net) == before
