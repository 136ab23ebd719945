from tests.broker.journal.test_batcher import frames_in
from tests.broker.talk import (
    ANSWER,
    NOT_BACK,
    REQUEST,
    House,
    ask,
    bodies,
    errors,
    kinds,
    message,
    request,
)

from weft.broker.journal.acks import acknowledge_when_safe, journal_failed, keep, why_not_kept
from weft.broker.journal.batcher import HELD_MAX_BYTES, Journal, JournalBatch
from weft.broker.service import Peer
from weft.broker.sweep import sweep
from weft.errors import BadOption, Overloaded, WeftError
from weft.wire.frames import Kind, encode, parse
from weft.wire.message.message import Message


class Library(House):
    """A service with a journal of `a.>`, whose batches are written when a test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[JournalBatch] = []
        self.journal = Journal([b"a.>"], 0, self.arena, self.batches.append)
        self.service.router.journal = self.journal

    def write(self) -> None:
        batch = self.batches.pop(0)
        position = batch.next_position
        self.journal.written(batch)
        self.journal.safe_until(position)
        self.flush()


def test_published_messages_are_kept_as_they_were_stamped() -> None:
    house = Library()
    reader, sender = house.guest(b"", b">"), house.guest()
    sender.say(message(b"a.b", b"1"), message(b"a.b", b"2"), message(b"c", b"3"))
    (batch,) = house.batches
    kept = [parse(frame) for frame in frames_in(batch)]
    assert kept == reader.heard()[:2]
    assert [frame.sequence for frame in kept] == [1, 2]


def test_nobody_else_has_to_listen() -> None:
    house = Library()
    house.guest().say(message(b"a.b", flags=NOT_BACK))
    assert len(frames_in(house.batches[0])) == 1
    assert house.service.deliveries == 0


def test_an_acknowledgement_comes_when_the_message_is_safe() -> None:
    house = Library()
    sender = house.guest()
    assert sender.say(message(b"a.b", flags=ANSWER)) == []
    house.write()
    (ok,) = sender.heard()
    assert (ok.kind, ok.subject, ok.sequence) == (Kind.OK, b"a.b", 1)


def test_what_is_not_kept_is_acknowledged_at_once() -> None:
    house = Library()
    assert kinds(house.guest().say(message(b"c", flags=ANSWER))) == [Kind.OK]
    assert house.batches == []


def test_a_request_is_not_kept() -> None:
    house = Library()
    house.guest(b"", b"a.b")
    sender = house.guest()
    assert kinds(sender.say(request(sender, b"a.b", flags=ANSWER))) == [Kind.OK]
    assert house.batches == []


def test_whoever_left_is_not_told() -> None:
    house = Library()
    sender = house.guest()
    sender.say(message(b"a.b", flags=ANSWER))
    sender.peer.end(None)
    house.write()
    assert sender.heard() == []


def test_while_the_journal_fails_messages_are_delivered_and_not_acknowledged() -> None:
    house = Library()
    reader, sender = house.guest(b"", b"a.>"), house.guest()
    sender.say(message(b"a.b", b"before", flags=ANSWER))
    journal_failed(house.service, "no space left")
    house.flush()
    (error,) = sender.heard()
    assert (error.subject, errors([error])) == (b"a.b", ["JournalFailed"])
    refused = sender.say(message(b"a.b", b"refused", flags=ANSWER), message(b"a.b", b"live"))
    assert errors(refused) == ["JournalFailed"]
    assert bodies(reader.heard()) == [b"before", b"live"]
    assert house.journal.missed == 1
    assert house.service.refused == {"JournalFailed": 2}
    house.journal.recovered()
    sender.say(message(b"a.b", b"after", flags=ANSWER))
    house.write()
    house.write()
    assert kinds(sender.heard()) == [Kind.OK]


def test_a_publisher_that_is_too_fast_is_held_and_not_taken_for_silent() -> None:
    house = Library()
    sender = house.guest()
    body = bytes(1 << 20)
    for _ in range(HELD_MAX_BYTES // len(body) + 2):
        assert not sender.peer.is_held
        sender.say(message(b"a.b", body))
    assert sender.peer.is_held
    house.wait(1000)
    sweep(house.service)
    house.flush()
    assert [each.kind for each in sender.heard()] == [Kind.PING]  # its own are not read


def test_questions_about_it_go_to_whoever_reads_it() -> None:
    house = Library()
    guest = house.guest()
    assert ask(guest, "history", position=0)["name"] == "NotKnown"
    asked: list[tuple[Peer, bytes, Message]] = []

    def answer(peer: Peer, reply: bytes, request: Message) -> WeftError | None:
        asked.append((peer, reply, request))
        if request["position"] < -1:
            raise BadOption("never")
        return Overloaded("not now") if request["position"] < 0 else None

    house.service.desks["history"] = answer
    assert ask(guest, "history", position=-2)["name"] == "BadOption"
    assert ask(guest, "history", position=-1)["name"] == "Overloaded"
    question = encode(Kind.MESSAGE, b"_WEFT.ask.history", Message(position=7).encode())
    assert errors(guest.say(question)) == ["Reserved"]
    body = Message(position=7).encode()
    reply = guest.inbox + b"page"
    assert guest.say(encode(Kind.MESSAGE, b"_WEFT.ask.history", body, reply, REQUEST)) == []
    peer, where, request_ = asked[-1]
    assert (peer, where, request_["position"]) == (guest.peer, reply, 7)


class Clerk:
    """Waits for the journal, and is no connection."""

    def __init__(self) -> None:
        self.told: list[bytes] = []

    def owe(self, frames: bytes) -> None:
        self.told.append(frames)


def test_who_waits_without_a_connection_is_told_what_is_safe_and_forgotten_when_it_fails() -> None:
    house = Library()
    sender, clerk = house.guest(), Clerk()
    sender.say(message(b"a.b", b"1"))
    house.journal.ask(clerk)
    sender.say(message(b"a.b", b"2", flags=ANSWER))
    assert house.journal.safe == 0
    house.write()
    assert clerk.told == [b""]
    assert house.journal.safe == 1
    house.journal.ask(clerk)
    journal_failed(house.service, "no disk")
    house.flush()
    assert errors(sender.heard()) == ["JournalFailed"]
    assert clerk.told == [b""]


def test_a_service_without_a_journal_says_so() -> None:
    assert "keeps no journal" in ask(House().guest(), "history", position=0)["text"]


def test_without_a_journal_there_is_nothing_to_do() -> None:
    house = House()
    sender = house.guest()
    assert why_not_kept(house.service) is None
    keep(sender.peer, 0, 0, 0)
    acknowledge_when_safe(sender.peer, 0)
    journal_failed(house.service, "nothing")
    assert sender.say() == []
