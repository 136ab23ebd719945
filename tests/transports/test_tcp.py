import asyncio
import socket

import pytest
from tests.broker.talk import ANSWER, message, subscribe
from tests.transports.loops import (
    CONNECT,
    Client,
    error_name,
    is_open,
    on_both_loops,
    small_buffers,
    tcp_pair,
    unix_pair,
    until,
)

from weft.broker.ingest import READ_BYTES
from weft.broker.limits import Limits
from weft.broker.service import Peer, Service
from weft.broker.sweep import LINGER_NS, sweep
from weft.errors import SlowReader
from weft.transports.loop.poller import READING, WRITING, Poll
from weft.transports.loop.turn import Turn
from weft.transports.tcp import SEND_BUFFER_BYTES, UNANSWERED_MS, TcpDoor, prepare
from weft.wire.frames import Frame, Kind, encode
from weft.wire.message.message import Message

GOODBYE = encode(Kind.GOODBYE)


class Hall:
    """A service on the running loop, and the clients that came in by this door."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.loop = asyncio.get_running_loop()
        self.service = Service("weather", "g", 1, limits or Limits())
        self.turn = Turn(self.service, self.loop)
        self.poll = Poll(self.turn, self.loop)
        self.clients: list[Client] = []

    async def client(
        self, *patterns: bytes, is_tcp: bool = False, is_small: bool = False
    ) -> tuple[Client, Peer]:
        """Someone who was greeted and has subscribed."""
        client, theirs = tcp_pair() if is_tcp else unix_pair()
        if is_small:
            small_buffers(client, theirs)
        self.clients.append(client)
        peer = TcpDoor(self.turn, self.poll, theirs.detach()).open(1)
        await client.say(CONNECT, *(subscribe(pattern) for pattern in patterns))
        await client.hear(1 + len(patterns))
        return client, peer

    def close(self) -> None:
        for client in self.clients:
            client.close()
        for peer in list(self.service.peers.values()):
            if peer.door is not None:
                peer.door.abort()
        self.poll.close()


def bodies(frames: list[Frame]) -> list[bytes]:
    return [frame.body for frame in frames if frame.kind == Kind.MESSAGE]


@on_both_loops
async def test_messages_go_from_socket_to_socket() -> None:
    hall = Hall()
    one, _ = await hall.client()
    other, _ = await hall.client(b"a", is_tcp=True)
    await one.say(*[message(b"a", b"%d" % number) for number in range(1000)])
    assert bodies(await other.hear(1000)) == [b"%d" % number for number in range(1000)]
    hall.close()


@on_both_loops
async def test_many_full_reads_in_a_row_are_all_dealt_with() -> None:
    hall = Hall()
    sender, _ = await hall.client(is_tcp=True)
    reader, _ = await hall.client(b"a", is_tcp=True)
    frame = message(b"a", bytes(900_000))
    sending = asyncio.create_task(sender.say(*[frame] * 5))
    assert [len(body) for body in bodies(await reader.hear(5))] == [900_000] * 5
    await sending
    hall.close()


@on_both_loops
async def test_a_slow_reader_gets_everything_in_order_once_it_reads() -> None:
    hall = Hall()
    reader, peer = await hall.client(b"a", is_small=True)
    sender, _ = await hall.client()
    frames = [message(b"a", b"%05d" % number + bytes(500)) for number in range(2000)]
    await sender.say(*frames, encode(Kind.PING))
    await sender.hear()
    await until(peer.outbox.is_behind)
    heard = bodies(await reader.hear(2000))
    assert [body[:5] for body in heard] == [b"%05d" % number for number in range(2000)]
    await until(lambda: not peer.outbox.is_behind())
    await sender.say(message(b"a", b"and on"))
    assert bodies(await reader.hear()) == [b"and on"]
    hall.close()


def end_lingering(hall: Hall) -> None:
    """Have the time pass that those who are over have to hang up."""
    hall.service.now_ns += LINGER_NS + 1
    for lost in sweep(hall.service):
        assert lost.door is not None
        lost.door.abort()


@on_both_loops
async def test_one_who_is_cut_and_reads_on_is_told_why_after_the_frame_it_has_begun() -> None:
    hall = Hall(Limits(outbox_bytes=64 << 10))
    slow, peer = await hall.client(b"a", is_small=True)
    sender, _ = await hall.client()
    await sender.say(*[message(b"a", bytes(1000))] * 300)
    await until(lambda: peer.is_over)
    *heard, last = await slow.hear_all()
    assert 0 < len(bodies(heard)) < 300
    assert last.kind == Kind.ERROR
    error = Message.from_body(last.body)
    assert (error["name"], error["number"]) == ("SlowReader", SlowReader.number)
    assert "the limit of 65536 (outbox_bytes)" in str(error["text"])
    hall.close()


@on_both_loops
async def test_a_publisher_is_not_read_from_while_its_reader_is_behind() -> None:
    hall = Hall(Limits(outbox_bytes=8 << 20))
    slow, peer = await hall.client(b"a", is_small=True)
    sender, publisher = await hall.client()
    count = 20_000
    sending = asyncio.create_task(sender.say(*[message(b"a", bytes(1000))] * count))
    await until(lambda: publisher.is_paused)
    assert hall.service.holds
    heard = 0
    while heard < count:
        heard += len(bodies(await slow.hear()))
        assert not peer.is_over
    await sending
    assert heard == count
    await sender.say(encode(Kind.PING))
    assert [frame.kind for frame in await sender.hear()] == [Kind.PONG]
    assert hall.service.holds == []
    hall.close()


@on_both_loops
async def test_a_question_of_a_publisher_that_is_held_is_answered() -> None:
    hall = Hall(Limits(outbox_bytes=1 << 20))
    _, peer = await hall.client(b"a", is_small=True)
    sender, _ = await hall.client()
    await sender.say(*[message(b"a", bytes(1000))] * 400)
    await until(lambda: peer.outbox.is_crowded)
    # The reader takes nothing, so nothing eases it.
    await sender.say(message(b"a"), encode(Kind.PING))
    assert [frame.kind for frame in await sender.hear()] == [Kind.PONG]
    hall.close()


@on_both_loops
async def test_one_who_reads_nothing_is_cut_and_the_others_go_on() -> None:
    hall = Hall(Limits(outbox_bytes=64 << 10))
    slow, peer = await hall.client(b"a", is_small=True)
    sender, _ = await hall.client(b"a")
    for _ in range(3):
        await sender.say(*[message(b"a", bytes(1000))] * 100)
        await sender.hear(100)
    await until(lambda: peer.is_over)
    assert isinstance(peer.error, SlowReader)
    end_lingering(hall)
    assert peer.number not in hall.service.peers
    assert hall.service.ended == {"SlowReader": 1}
    assert slow.sock.fileno() >= 0
    await sender.say(message(b"a", b"still here"))
    assert bodies(await sender.hear()) == [b"still here"]
    hall.close()


@on_both_loops
async def test_one_who_says_goodbye_is_sent_what_it_is_owed_and_then_the_end() -> None:
    hall = Hall()
    client, peer = await hall.client(b"a", is_small=True)
    sender, _ = await hall.client()
    await sender.say(*[message(b"a", bytes(1000))] * 200, encode(Kind.PING))
    await sender.hear()
    await client.say(encode(Kind.GOODBYE))
    await until(lambda: peer.is_over)
    assert len(bodies(await client.hear_all())) == 200
    await until(lambda: len(hall.service.peers) == 1)
    assert hall.service.ended == {"left": 1}
    hall.close()


def receive_waiting(client: Client) -> None:
    """Take, without a turn of the loop, what the kernel holds for a client."""
    try:
        while data := client.sock.recv(1 << 16):
            client.decoder.feed(data)
    except BlockingIOError:
        pass


@pytest.mark.parametrize("last", [GOODBYE, b"\0\0\0\0", b""], ids=["goodbye", "error", "end"])
@on_both_loops
async def test_last_words_are_answered_also_if_the_backlog_ends_in_the_same_turn(
    last: bytes,
) -> None:
    hall = Hall()
    client, peer = await hall.client(b"a", is_small=True)
    sender, _ = await hall.client()
    count = 0
    while not peer.outbox.is_behind():
        await sender.say(message(b"a", bytes(1000)), encode(Kind.PING))
        await sender.hear()
        count += 1
    # Both at once: there are last words to read, and there is room for the backlog.
    client.sock.send(message(b"b", flags=ANSWER) + last)
    if not last:
        client.sock.shutdown(socket.SHUT_WR)
    receive_waiting(client)
    heard = await client.hear_all()
    assert len(bodies(heard)) == count
    errors = [Kind.ERROR] if last == b"\0\0\0\0" else []
    assert [frame.kind for frame in heard[count:]] == [Kind.OK, *errors]
    hall.close()


@pytest.mark.parametrize("size", [READ_BYTES - 1, READ_BYTES, READ_BYTES + 1])
@on_both_loops
async def test_an_error_at_the_very_end_is_told_however_the_reads_fall(size: int) -> None:
    hall = Hall()
    client, theirs = unix_pair()
    hall.clients.append(client)
    asked = message(b"b", flags=ANSWER)
    rest = size - len(CONNECT) - len(asked) - 4
    client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * READ_BYTES)
    data = CONNECT + asked + message(b"b", bytes(rest - len(message(b"b", b"")))) + b"\0\0\0\0"
    assert client.sock.send(data) == size
    client.sock.shutdown(socket.SHUT_WR)
    TcpDoor(hall.turn, hall.poll, theirs.detach()).open(1)
    heard = await client.hear_all()
    assert [frame.kind for frame in heard] == [Kind.WELCOME, Kind.OK, Kind.ERROR]
    await until(lambda: not hall.service.peers)
    hall.close()


@on_both_loops
async def test_a_reader_that_takes_little_at_a_time_is_sent_more_when_its_door_is_pressed() -> None:
    hall = Hall()
    reader, peer = await hall.client(b"a", is_tcp=True)
    sender, _ = await hall.client()
    while not peer.outbox.is_behind():
        await sender.say(*[message(b"a", bytes(60_000))] * 10, encode(Kind.PING))
        await sender.hear()
    owed = peer.outbox.owed()
    taken = 0
    assert peer.door is not None
    # The kernel would tell only once a good part of its buffer is free.
    while peer.outbox.owed() == owed:
        taken += len(await hall.loop.sock_recv(reader.sock, 1000))
        peer.door.press()
    assert taken < SEND_BUFFER_BYTES
    hall.close()


@on_both_loops
async def test_one_that_sends_nothing_more_is_still_sent_what_it_is_owed() -> None:
    hall = Hall()
    client, _ = await hall.client(b"a", is_small=True)
    sender, _ = await hall.client()
    await sender.say(*[message(b"a", bytes(1000))] * 200, encode(Kind.PING))
    await sender.hear()
    client.sock.shutdown(socket.SHUT_WR)
    assert len(bodies(await client.hear_all())) == 200
    await until(lambda: len(hall.service.peers) == 1)
    hall.close()


@on_both_loops
async def test_after_an_error_its_reader_learns_why_before_the_end() -> None:
    hall = Hall()
    client, peer = await hall.client(is_tcp=True)
    await client.say(b"\0\0\0\0", b"x" * 100_000)
    (error,) = await client.hear_all()
    assert error_name(error) == "BadFrame"
    assert peer.number in hall.service.peers
    await client.say(b"more that nobody listens to")
    client.close()
    await until(lambda: not hall.service.peers)
    assert hall.service.ended == {"BadFrame": 1}
    hall.close()


@on_both_loops
async def test_one_who_is_over_gets_nothing_new_and_harms_nobody() -> None:
    hall = Hall()
    client, _ = await hall.client(b"a", is_tcp=True)
    sender, _ = await hall.client()
    await client.say(b"\0\0\0\0")
    assert [frame.kind for frame in await client.hear_all()] == [Kind.ERROR]
    for number in range(3):
        await sender.say(message(b"a", b"%d" % number, flags=ANSWER))
        assert [frame.kind for frame in await sender.hear()] == [Kind.OK]
    assert await client.hear() == []
    hall.close()


@on_both_loops
async def test_an_error_and_an_end_in_one_go_leave_nothing_open() -> None:
    hall = Hall()
    client, _ = await hall.client(is_tcp=True)
    await client.say(b"\0\0\0\0")
    client.sock.shutdown(socket.SHUT_WR)
    await until(lambda: not hall.service.peers)
    hall.close()


@on_both_loops
async def test_one_who_resets_is_gone() -> None:
    hall = Hall()
    client, _ = await hall.client(b"a", is_tcp=True)
    client.reset()
    await until(lambda: not hall.service.peers)
    assert (hall.service.ended, len(hall.service.router)) == ({"left": 1}, 0)
    hall.close()


@on_both_loops
async def test_one_who_resets_together_with_its_last_words_is_gone() -> None:
    hall = Hall()
    client, _ = await hall.client(b"a", is_tcp=True)
    await client.say(message(b"b"))
    client.reset()
    await until(lambda: not hall.service.peers)
    assert hall.service.total.messages == 1
    hall.close()


@on_both_loops
async def test_one_who_resets_after_an_error_is_gone() -> None:
    hall = Hall()
    client, theirs = tcp_pair()
    await client.say(CONNECT, b"\0\0\0\0")
    client.reset()
    TcpDoor(hall.turn, hall.poll, theirs.detach()).open(1)
    await until(lambda: hall.service.ended == {"BadFrame": 1})
    hall.close()


@on_both_loops
async def test_sending_to_one_who_reset_unnoticed_harms_nobody() -> None:
    hall = Hall()
    gone, _ = await hall.client(b"a", is_tcp=True)
    other, _ = await hall.client(b"a")
    await gone.say(message(b"b"))
    gone.reset()
    await until(lambda: hall.service.total.messages >= 1)
    for number in range(3):
        await other.say(message(b"a", b"%d" % number))
        assert bodies(await other.hear()) == [b"%d" % number]
    await until(lambda: len(hall.service.peers) == 1)
    hall.close()


@on_both_loops
async def test_one_who_resets_while_it_is_behind_is_gone() -> None:
    hall = Hall()
    slow, peer = await hall.client(b"a", is_tcp=True, is_small=True)
    sender, _ = await hall.client()
    await sender.say(*[message(b"a", bytes(60_000))] * 20, encode(Kind.PING))
    await sender.hear()
    await until(peer.outbox.is_behind)
    slow.reset()
    await until(lambda: len(hall.service.peers) == 1)
    assert peer.outbox.owed() == 0
    hall.close()


@on_both_loops
async def test_what_is_held_for_one_who_reset_harms_nobody() -> None:
    hall = Hall()
    gone, peer = await hall.client(is_tcp=True)
    await gone.say(message(b"b"))
    gone.reset()
    await until(lambda: hall.service.total.messages == 1)
    if peer.door is not None:
        hall.service.arena.reserve(hall.service.arena.room())
        peer.owe(encode(Kind.PING))
    hall.turn.flush()
    await until(lambda: not hall.service.peers)
    hall.close()


@on_both_loops
async def test_closing_twice_closes_once() -> None:
    hall = Hall()
    client, theirs = unix_pair()
    fd = theirs.detach()
    door = TcpDoor(hall.turn, hall.poll, fd)
    door.open(1)
    await client.say(CONNECT)
    await client.hear()
    door.abort()
    assert not is_open(fd)
    kept, other = socket.socketpair()
    # Whoever gets the same number next must not be closed by mistake.
    for call in (door.abort, door.finish):
        call()
    door.happened(READING | WRITING)
    assert is_open(kept.fileno())
    assert is_open(other.fileno())
    kept.close()
    other.close()
    client.close()
    assert hall.service.peers == {}
    hall.close()


@on_both_loops
async def test_what_the_turn_has_no_room_for_is_sent_after_it_all_the_same() -> None:
    hall = Hall()
    client, peer = await hall.client()
    hall.service.arena.reserve(hall.service.arena.room())
    peer.owe(encode(Kind.PING, body=b"held"))
    hall.turn.flush()
    assert [frame.body for frame in await client.hear()] == [b"held"]
    assert not peer.outbox.is_behind()
    hall.close()


@on_both_loops
async def test_one_whose_every_word_is_refused_for_want_of_reading_is_cut() -> None:
    hall = Hall(Limits(outbox_bytes=16 << 10))
    client, peer = await hall.client(is_small=True)
    other, _ = await hall.client()
    await client.say(*[encode(Kind.PING, body=bytes(64))] * 20_000)
    await until(lambda: peer.is_over)
    end_lingering(hall)
    assert hall.service.ended == {"SlowReader": 1}
    with pytest.raises(OSError, match=r"Broken pipe|Connection reset"):
        await client.say(*[encode(Kind.PING, body=bytes(64))] * 100_000)
    await other.say(encode(Kind.PING))
    assert [frame.kind for frame in await other.hear()] == [Kind.PONG]
    hall.close()


@on_both_loops
async def test_readers_of_a_large_message_who_leave_at_any_point_leave_nothing() -> None:
    hall = Hall()
    sender, _ = await hall.client(is_tcp=True)
    for wanted in (0, 1, 5000, 50_000):
        reader, peer = await hall.client(b"a", is_tcp=True, is_small=True)
        sending = asyncio.create_task(sender.say(message(b"a", bytes(300_000))))
        got = 0
        while got < wanted:
            got += len(await hall.loop.sock_recv(reader.sock, min(4096, wanted - got)))
        await sending
        reader.close()
        await until(lambda number=peer.number: number not in hall.service.peers)  # type: ignore[misc]
    assert hall.service.unfinished_bytes == 0
    hall.close()


def test_what_a_listener_accepts_inherits_bounds() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        prepare(listener)
        with socket.create_connection(listener.getsockname()):
            accepted, _ = listener.accept()
            with accepted:
                size = accepted.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
                patience = accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
                assert 0 < size <= 2 * SEND_BUFFER_BYTES
                assert patience == UNANSWERED_MS
                assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
