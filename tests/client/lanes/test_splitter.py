"""What a client publishes, split between the gateway and its lanes."""

from collections.abc import Iterator

import pytest

from weft.client.lanes.send_stream import WINDOW_BYTES, Out, frames_in
from weft.client.lanes.splitter import FIRST_SEQUENCE, FOLLOW_S, REPLIES_MAX, Direct, Splitter
from weft.wire.buffer import Writer
from weft.wire.frame_senders import replies_in
from weft.wire.frames import Flag, Kind, encode, parse
from weft.wire.lane_messages import word_in

INBOX = b"_INBOX.00000001." + b"7" * 24


class Ways:
    """A splitter, and what comes out of it on every way."""

    def __init__(self, *numbers: int) -> None:
        self.splitter = Splitter()
        self.splitter.stamp.origin, self.splitter.stamp.publisher = 5, 6
        self.splitter.own_inbox = INBOX + b"."
        self.gateway: list[bytes] = []
        self.lanes: dict[int, list[bytes]] = {number: [] for number in numbers}
        self.outs = {number: Out(number, 5, self.lanes[number].append) for number in numbers}
        for out in self.outs.values():
            self.splitter.add(out)
        self.now = 100.0

    def direct(self, subject: bytes, *numbers: int) -> Direct:
        """Let a subject go by lanes."""
        outs = [self.outs[number] for number in numbers]
        route = Direct(subject, outs, outs)
        self.splitter.routes[subject] = route
        return route

    def publish(self, *frames: bytes) -> None:
        """Send frames, all of them in one piece."""
        writer = Writer()
        for frame in frames:
            writer.put(frame)
        self.splitter.split(writer.data, writer.size, self._write, self.now)

    def _write(self, view: memoryview) -> None:
        self.gateway.append(bytes(view))

    def by_gateway(self) -> list[str]:
        """What came out to the gateway, in words."""
        return list(_told(self.gateway))

    def by_lane(self, number: int) -> list[str]:
        """What came out on a lane, in words."""
        return list(_told(self.lanes[number]))


def _told(written: list[bytes]) -> Iterator[str]:
    for frame in frames_in(b"".join(written)):
        if frame[4] == Kind.LANE:
            word, facts = word_in(frame)
            peers = facts.get("peers", "")
            numbers = facts.get("numbers") or facts.get("number")
            yield f"{word} {peers}{numbers}"
        else:
            yield parse(frame).body.decode()


def message(subject: str, body: str, flags: int = 0, reply: bytes = b"") -> bytes:
    return encode(Kind.MESSAGE, subject.encode(), body.encode(), reply, flags)


@pytest.mark.req("HUB-16", "HUB-22")
def test_a_direct_subject_goes_by_every_lane_and_both_ways_hear_of_the_change() -> None:
    ways = Ways(1, 2)
    ways.direct(b"ticks", 1, 2)
    ways.publish(message("ticks", "a"), message("ticks", "b"))
    assert ways.by_gateway() == ["switch [1, 2][1, 1]"]
    assert ways.by_lane(1) == ways.by_lane(2) == ["switch 1", "a", "b"]


@pytest.mark.req("HUB-22")
def test_what_is_for_anyone_takes_the_others_with_it_for_a_moment() -> None:
    ways = Ways(1)
    ways.direct(b"ticks", 1)
    ways.publish(message("ticks", "a"), message("news", "b"), message("ticks", "c"))
    ways.now += FOLLOW_S / 2
    ways.publish(message("ticks", "d"))
    assert ways.by_gateway() == ["switch [1][1]", "switch [1][2]", "b", "c", "d"]
    assert ways.by_lane(1) == ["switch 1", "a", "switch 2"]
    ways.now += FOLLOW_S
    ways.publish(message("ticks", "e"))
    assert ways.by_gateway()[5:] == ["switch [1][3]"]
    assert ways.by_lane(1)[3:] == ["switch 3", "e"]


def test_what_follows_does_not_keep_itself_at_the_gateway() -> None:
    ways = Ways(1)
    ways.direct(b"ticks", 1)
    ways.publish(message("news", "a"))
    for _ in range(10):
        ways.now += FOLLOW_S * 0.3
        ways.publish(message("ticks", "."))
    assert ways.by_lane(1) == ["switch 1", *["."] * 7]


@pytest.mark.parametrize(
    "frame",
    [
        message("_WEFT.ask.status", "q", Flag.REQUEST, INBOX + b".1"),
        message("_INBOX.00000001." + "8" * 24 + ".4", "for another"),
        encode(Kind.PING, body=b"p"),
        encode(Kind.SUBSCRIBE, b"more", b"s"),
    ],
)
def test_what_is_for_somebody_else_changes_no_way(frame: bytes) -> None:
    ways = Ways(1)
    ways.direct(b"ticks", 1)
    ways.publish(message("ticks", "a"), frame, message("ticks", "b"))
    assert ways.by_lane(1) == ["switch 1", "a", "b"]
    assert len(ways.by_gateway()) == 2


@pytest.mark.parametrize("flag", [Flag.ANSWER, Flag.MASKED])
def test_what_only_a_gateway_can_do_goes_through_it(flag: Flag) -> None:
    ways = Ways(1)
    ways.direct(b"ticks", 1)
    ways.publish(message("ticks", "a"), message("ticks", "b", flag), message("ticks", "c"))
    assert ways.by_gateway() == ["switch [1][1]", "switch [1][2]", "b", "switch [1][3]"]
    assert ways.by_lane(1) == ["switch 1", "a", "switch 2", "switch 3", "c"]


@pytest.mark.req("HUB-8")
def test_an_answer_goes_back_the_way_that_the_question_came() -> None:
    ways = Ways(1)
    asked = [message("sums", "?", Flag.REQUEST, INBOX + b".3f"), message("sums", "not asked")]
    ways.splitter.note_replies(replies_in(asked), ways.outs[1])
    ways.publish(message(INBOX.decode() + ".3f", "yes"), message(INBOX.decode() + ".40", "no"))
    assert ways.by_lane(1) == ["switch 1", "yes"]
    assert ways.by_gateway() == ["switch [1][1]", "no"]
    ways.splitter.forget_replies(ways.outs[1])
    ways.publish(message(INBOX.decode() + ".3f", "again"))
    assert ways.by_gateway()[2:] == ["again"]


@pytest.mark.req("HUB-8", "HUB-21")
def test_whoever_has_answers_sent_to_others_goes_through_the_gateway() -> None:
    ways = Ways(1)
    ways.direct(b"jobs", 1)
    own = message("jobs", "own", 0, INBOX + b".1")
    other = message("jobs", "results", 0, b"results")
    third = message("jobs", "third", 0, INBOX[:-1] + b"8.1")
    for each in (own, other, third, own):
        ways.publish(each)
    assert ways.by_lane(1) == ["switch 1", "own", "switch 2", "switch 3", "own"]
    assert ways.by_gateway() == [
        "switch [1][1]",
        "switch [1][2]",
        "results",
        "third",
        "switch [1][3]",
    ]


@pytest.mark.req("HUB-8")
def test_an_answer_that_awaits_another_goes_through_the_gateway() -> None:
    ways = Ways(1)
    asked = [message("sums", "?", Flag.REQUEST, INBOX + b".3f")]
    ways.splitter.note_replies(replies_in(asked), ways.outs[1])
    ways.publish(message(INBOX.decode() + ".3f", "and you?", 0, b"_INBOX.00000002.5.1"))
    assert ways.by_lane(1) == []
    assert ways.by_gateway() == ["and you?"]


def test_questions_and_answers_by_lanes_are_counted_and_messages_are_not() -> None:
    ways = Ways(1)
    ways.direct(b"ticks", 1)
    ways.publish(message("ticks", "a"), message("news", "b"))
    ways.now += FOLLOW_S
    assert ways.splitter.exchanges == 0
    ways.publish(message("ticks", "?", Flag.REQUEST, INBOX + b".1"))
    assert ways.splitter.exchanges == 1
    asked = message("here", "?", Flag.REQUEST, b"_INBOX.00000001.2.3")
    ways.splitter.note_replies(replies_in([asked]), ways.outs[1])
    ways.publish(message("_INBOX.00000001.2.3", "!"))
    assert ways.splitter.exchanges == 2


def test_only_so_many_questions_are_remembered() -> None:
    ways = Ways(1)
    asked = [message("s", "?", 0, INBOX + b".%d" % number) for number in range(REPLIES_MAX + 1)]
    ways.splitter.note_replies(replies_in(asked), ways.outs[1])
    ways.publish(message(INBOX.decode() + ".0", "too late"))
    assert ways.by_gateway() == ["too late"]


@pytest.mark.req("HUB-8")
def test_a_request_goes_to_one_receiver_after_the_other_and_is_remembered() -> None:
    ways = Ways(1, 2)
    ways.direct(b"sums", 1, 2)
    for number in range(4):
        reply = INBOX + b".%d" % number
        ways.publish(message("sums", str(number), Flag.REQUEST, reply))
    asked = {number: ways.by_lane(number)[1:] for number in (1, 2)}
    assert sorted(asked[1] + asked[2]) == ["0", "1", "2", "3"]
    assert len(asked[1]) == len(asked[2]) == 2
    assert {reply for reply, peer in ways.splitter.asked.items() if peer == 1} == {
        INBOX + b"." + body.encode() for body in asked[1]
    }


def test_who_only_listens_is_not_asked() -> None:
    ways = Ways(1)
    ways.direct(b"sums", 1).answering = []
    ways.publish(message("sums", "q", Flag.REQUEST, INBOX + b".1"))
    assert ways.by_gateway() == ["q"]
    assert ways.by_lane(1) == []


@pytest.mark.req("HUB-21")
def test_who_sent_it_and_its_number_are_in_the_frame() -> None:
    ways = Ways(1)
    route = ways.direct(b"ticks", 1)
    ways.splitter.stamp.time_ns = 77
    ways.publish(message("ticks", "a"), message("ticks", "b"))
    frames = frames_in(b"".join(ways.lanes[1]))[1:]
    told = [parse(frame) for frame in frames]
    assert [(each.origin, each.publisher, each.time_ns) for each in told] == [(5, 6, 77)] * 2
    assert [each.sequence for each in told] == [FIRST_SEQUENCE, FIRST_SEQUENCE + 1]
    assert (route.messages, route.bytes) == (2, sum(map(len, frames)))


@pytest.mark.req("HUB-22")
def test_what_was_not_confirmed_is_sent_again_with_the_changes_of_way_in_it() -> None:
    ways = Ways(1)
    ways.direct(b"ticks", 1)
    out = ways.outs[1]
    ways.publish(message("ticks", "a"))
    assert out.ack(2)
    ways.publish(message("ticks", "b"), message("news", "c"))
    ended = out.finish()
    assert [frame[4] for frame in ended] == [Kind.LANE, Kind.TAIL, Kind.LANE, Kind.LANE]
    assert word_in(ended[0])[1].get("from") == 2
    tail = parse(ended[1])
    assert (tail.body, tail.origin, tail.sequence) == (b"b", 1, FIRST_SEQUENCE + 1)
    assert word_in(ended[2])[1].get("numbers") == [2]
    assert word_in(ended[3])[1].get("count") == 4
    assert out.finish() == []


def test_a_lane_is_left_once_and_said_so_on_both_ways() -> None:
    ways = Ways(1)
    ways.direct(b"ticks", 1)
    ways.publish(message("ticks", "a"))
    told: list[bytes] = []
    for _ in range(2):
        ways.splitter.leave(ways.outs[1], told.append)
    assert list(_told(told)) == ["switch [1][2]"]
    assert ways.by_lane(1) == ["switch 1", "a", "switch 2"]
    ways.splitter.remove(ways.outs[1])
    ways.splitter.remove(ways.outs[1])
    assert not ways.splitter.is_needed


def test_as_much_as_may_be_under_way_is_full_until_it_is_confirmed() -> None:
    ways = Ways(1)
    ways.direct(b"ticks", 1)
    assert ways.splitter.is_needed
    ways.publish(*[message("ticks", "x" * 100_000)] * 20)
    assert [ways.splitter.is_full, ways.outs[1].unacked_bytes < WINDOW_BYTES] == [False, True]
    ways.publish(message("ticks", "x" * 100_000))
    assert [ways.splitter.is_full, ways.outs[1].is_settled] == [True, False]
    assert ways.outs[1].ack(22)
    assert [ways.splitter.is_full, ways.outs[1].is_settled] == [False, True]


@pytest.mark.parametrize("count", [-1, 1, 5])
def test_nobody_can_confirm_what_was_not_sent_or_less_than_before(count: int) -> None:
    ways = Ways(1)
    ways.direct(b"ticks", 1)
    ways.publish(message("ticks", "a"), message("ticks", "b"))
    assert ways.outs[1].ack(2)
    assert not ways.outs[1].ack(count)


def test_a_stretch_that_was_taken_in_part_is_kept_whole() -> None:
    ways = Ways(1)
    ways.direct(b"ticks", 1)
    ways.publish(message("ticks", "a"), message("ticks", "b"))
    assert ways.outs[1].ack(2)
    assert word_in(ways.outs[1].finish()[0])[1].get("from") == 1


def test_where_lanes_are_required_nothing_else_leaves_but_questions_to_the_gateway() -> None:
    ways = Ways(1)
    ways.splitter.is_required = True
    ways.direct(b"ticks", 1)
    asked = message("_WEFT.ask.status", "q", Flag.REQUEST, INBOX + b".1")
    ways.publish(message("ticks", "a"), message("news", "b"), asked, message("ticks", "c"))
    assert ways.by_gateway() == ["switch [1][1]", "q"]
    assert ways.by_lane(1) == ["switch 1", "a", "c"]
    assert ways.splitter.dropped == 1
    assert [frame[4] for frame in ways.outs[1].finish(with_tail=False)] == [Kind.LANE] * 2
