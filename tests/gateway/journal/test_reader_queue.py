"""Readers of lent journals who read slowly, not at all, or are too many."""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tests.attacks.gateway_process import eventually

from weft.errors import Overloaded, TooMany
from weft.gateway.journal import reader_queue as module
from weft.gateway.journal import transfer
from weft.gateway.journal.lend import FileRequest
from weft.gateway.journal.reader_queue import Readers
from weft.gateway.journal.transfer import Transfer

WAIT_S = 20
LARGE = 64 << 20


def request(key: str = "", target: str = "small") -> FileRequest:
    return FileRequest(target, "", is_head=False, holder=key and f"key {key}")


@contextmanager
def answering(monkeypatch: pytest.MonkeyPatch, places: int, waiting: int) -> Iterator[Readers]:
    """Readers that get `small`, or so much that it takes a while."""
    monkeypatch.setattr(module, "READERS_MAX", places)
    monkeypatch.setattr(module, "WAITING_MAX", waiting)

    def answer(out: Transfer, asked: FileRequest) -> None:
        out.send(b"x" * LARGE if asked.target == "large" else b"small")

    with closing(Readers(answer)) as readers:
        yield readers


def asks(readers: Readers, asked: FileRequest) -> socket.socket:
    """Someone who asked; whoever is refused has no connection any more."""
    ours, theirs = socket.socketpair()
    ours.settimeout(WAIT_S)
    try:
        readers.take(theirs, asked)
    except (Overloaded, TooMany):
        theirs.close()
        ours.close()
        raise
    return ours


def test_one_key_has_half_of_the_places(monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(monkeypatch, places=4, waiting=8) as readers:
        idle = [asks(readers, request("greedy", "large")) for _ in range(4)]
        with asks(readers, request("honest")) as honest:
            assert honest.recv(100) == b"small"
            assert honest.recv(100) == b""
        for each in idle:
            each.close()


def test_one_key_has_half_of_the_queue_and_all_of_it_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transfer, "CROWDED_S", float(WAIT_S))
    with answering(monkeypatch, places=2, waiting=4) as readers:
        taken = [asks(readers, request("greedy", "large")) for _ in range(3)]
        with pytest.raises(TooMany, match="this key has 2 readers of journals that wait"):
            asks(readers, request("greedy", "large"))
        taken += [asks(readers, request("other", "large")) for _ in range(3)]
        with pytest.raises(Overloaded, match="4 readers of journals wait, which is the limit"):
            asks(readers, request("third"))
        for each in taken:
            each.close()


def test_without_keys_who_reads_nothing_is_given_up_while_others_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transfer, "CROWDED_S", 0.2)
    with answering(monkeypatch, places=2, waiting=8) as readers:
        idle = [asks(readers, request(target="large")) for _ in range(2)]
        with asks(readers, request()) as honest:
            assert honest.recv(100) == b"small"
        for each in idle:
            each.close()


def test_who_reads_a_little_at_a_time_is_given_up_while_others_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transfer, "CROWDED_S", 0.2)
    monkeypatch.setattr(transfer, "CROWDED_BYTES", LARGE)
    with answering(monkeypatch, places=1, waiting=8) as readers:
        trickle = asks(readers, request(target="large"))
        honest = asks(readers, request())
        is_told = threading.Event()

        def reads() -> None:
            while not is_told.is_set() and trickle.recv(4096):
                is_told.wait(0.01)

        reader = threading.Thread(target=reads)
        reader.start()
        assert honest.recv(100) == b"small"
        is_told.set()
        reader.join()
        trickle.close()
        honest.close()


def test_who_reads_slowly_while_nobody_waits_gets_everything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transfer, "CROWDED_S", 0.01)
    with answering(monkeypatch, places=1, waiting=8) as readers:
        with asks(readers, request(target="large")) as slow:
            got = 0
            while data := slow.recv(1 << 20):
                got += len(data)
        assert got == LARGE


def test_who_waits_for_its_own_share_hurries_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "CROWDED_S", 0.01)
    monkeypatch.setattr(transfer, "CROWDED_BYTES", LARGE)
    with answering(monkeypatch, places=4, waiting=1000) as readers:
        slow = asks(readers, request("slow", "large"))
        # Of these there is always one that waits: each is given up for the next.
        greedy = [asks(readers, request("greedy", "large")) for _ in range(300)]
        got = 0
        while data := slow.recv(1 << 20):
            got += len(data)
        assert got == LARGE
        for each in (slow, *greedy):
            each.close()


def test_who_does_not_hang_up_takes_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(monkeypatch, places=1, waiting=8) as readers:
        held = []
        for _ in range(20):
            held.append(asks(readers, request()))
            assert held[-1].recv(100) == b"small"
        for each in held:
            each.close()


def test_a_fault_costs_neither_the_place_nor_the_connection(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "READERS_MAX", 1)

    def answer(out: Transfer, asked: FileRequest) -> None:
        if asked.target == "bad":
            raise ValueError("of ours")
        out.send(b"small")

    with closing(Readers(answer)) as readers:
        with asks(readers, request(target="bad")) as bad:
            assert bad.recv(100) == b""
        with asks(readers, request()) as honest:
            assert honest.recv(100) == b"small"
    assert "ValueError: of ours" in capsys.readouterr().err


def test_a_part_of_a_file_is_sent_or_what_there_is_of_it(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(range(100)))
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    with ours, theirs, path.open("rb") as file:
        out = Transfer(theirs.fileno(), lambda: False)
        out.send_file(file, 10, 20)
        assert ours.recv(1000) == bytes(range(10, 30))
        out.send_file(file, 90, 20)
        assert ours.recv(1000) == bytes(range(90, 100))


def test_those_who_have_their_answer_are_closed_in_the_end() -> None:
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    with closing(Readers(lambda _out, _asked: None)) as readers, ours:
        readers.lingering.add(theirs)
        ours.settimeout(WAIT_S)
        ours.send(b"more")
        eventually(lambda: theirs.fileno() < 0, lambda: theirs)
