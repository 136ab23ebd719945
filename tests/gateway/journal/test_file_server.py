"""A journal that is lent over HTTP, by a gateway as an operator runs it."""

import contextlib
import http.client
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.attacks.gateway_process import GatewayProcess, eventually
from tests.journal.desk import place_in, written

import weft
from weft.client.connection.http_get import problem_in
from weft.errors import NotKnown
from weft.journal.parquet.seal import seal_all
from weft.journal.read.arrow_batches import Lost, Range, batches_in
from weft.journal.read.sources import FolderShelf
from weft.journal.segment.blocks import Block, blocks_in, salt_of
from weft.journal.segment.file_names import segments_of
from weft.spark import remote as remote_module
from weft.spark.remote import RemoteShelf
from weft.wire.address import addresses_from


@pytest.fixture(scope="module")
def lender(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """A gateway with a journal of sealed, full and open segments."""
    folder = tmp_path_factory.mktemp("lender")
    data = folder / "data"
    settings = {
        "name": "london",
        "data": str(data),
        "journal.patterns": [">"],
        "journal.segment_bytes": 20_000,
    }
    with GatewayProcess(folder, settings) as running:
        running.data = data  # type: ignore[attr-defined]
        publish(running, 1000)
        eventually(lambda: "sealed" in states(data), lambda: states(data))
        publish(running, 10, first=1000)
        yield running


def publish(gateway: GatewayProcess, count: int, first: int = 0) -> None:
    with weft.Connection(gateway.address) as connection:
        for number in range(first, first + count):
            connection.publish("a.b", {"n": number}, acknowledge=number % 100 == 99)
        connection.publish("c", {"n": -1}, acknowledge=True)


def states(data: Path) -> set[str]:
    return {each.state for each in segments_of(data / "journal", "default")}


def shelf(gateway: GatewayProcess, service: str = "default") -> RemoteShelf:
    return RemoteShelf(addresses_from(gateway.address), service, None, None, 20.0)


def numbers(gateway: GatewayProcess, first: int, end: int) -> list[int]:
    wanted = Range(shelf(gateway), "london", first, end)
    found = batches_in(wanted, (b"a.>",), may_lack=False)
    return [
        weft.Message.from_body(body)["n"]
        for batch in found
        for body in batch.column("payload").to_pylist()
    ]


def get(gateway: GatewayProcess, path: str, **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=20)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read()


def test_what_is_lent_is_what_is_in_the_folder(lender: GatewayProcess) -> None:
    remote = shelf(lender)
    local = FolderShelf(lender.data / "journal", "default")  # type: ignore[attr-defined]
    assert remote.watch().ends() == local.watch().ends() == {"london": 1012}
    assert remote.watch().starts() == {"london": 0}
    assert remote.watch().ids() == local.watch().ids()
    assert list(remote.watch().ids()) == ["london"]
    assert numbers(lender, 0, 1012) == list(range(1010))
    assert numbers(lender, 3, 8) == [3, 4, 5, 6, 7]
    assert numbers(lender, 1005, 1012) == [1004, 1005, 1006, 1007, 1008, 1009]


def test_a_time_has_a_position(lender: GatewayProcess) -> None:
    remote = shelf(lender)
    assert remote.position_at("london", 0) == 0
    assert remote.position_at("london", 1 << 62) is None


def test_a_range_of_a_file_is_lent(lender: GatewayProcess) -> None:
    remote = shelf(lender)
    sealed = [each for each in remote.segments("london") if each.state == "sealed"]
    file = remote.sealed(sealed[0])
    with pq.ParquetFile(file) as parquet:
        assert parquet.metadata.num_rows == sealed[0].last - sealed[0].first + 1
    day, _, name = sealed[0].path.parts
    path = f"/journal/default/sealed/{day}/{name}"
    whole = get(lender, path)[1]
    assert get(lender, path, Range="bytes=4-7") == (206, whole[4:8])
    assert get(lender, path, Range="bytes=10-") == (206, whole[10:])
    status, body = get(lender, path, Range=f"bytes={len(whole)}-")
    assert (status, problem_in(body)) == (416, f"the file has {len(whole)} bytes")
    assert get(lender, path, Range="lines=1-2") == (200, whole)
    assert get(lender, path, Range="bytes=-9") == (206, whole[-9:])
    assert get(lender, path, Range="bytes=-999999999") == (206, whole)
    assert get(lender, path, Range="bytes=-0")[0] == 416


def test_a_file_is_read_with_its_end_or_without(
    lender: GatewayProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_module, "END_BYTES", 100)
    assert numbers(lender, 0, 100) == list(range(100))


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/journal/", 404),
        ("/journal/default/nothing", 404),
        ("/journal/default/blocks/_open-1-london.weft?first=0", 404),
        ("/journal/default/blocks/..%2f..%2f..%2fetc%2fpasswd?first=0", 404),
        ("/journal/default/sealed/..%2f..%2f/passwd", 404),
        ("/journal/default/sealed/date=2026-11-18/node=london/_open-1.parquet", 404),
        (f"/journal/default/sealed/date=2026-11-18/{0:020}-{9:020}-{0:08x}.parquet", 404),
        (f"/journal/default/sealed/..%2fdate=2026-11-18/{0:020}-{9:020}-{0:08x}.parquet", 404),
        (f"/journal/default/blocks/_open-{0:020}-paris.weft?first=0", 404),
        ("/journal/..%2fdefault", 404),
        ("/journal/%00", 404),
        ("/journal/default/position", 400),
        ("/journal/default/position?time_ns=x", 400),
        ("/journal/default/position?time_ns=" + "9" * 21, 400),
    ],
)
def test_nothing_else_is_lent(lender: GatewayProcess, path: str, status: int) -> None:
    assert get(lender, path)[0] == status


def test_a_service_without_messages_has_an_empty_journal(lender: GatewayProcess) -> None:
    answer = json.loads(get(lender, "/journal/never-heard-of")[1])
    assert answer == {"node": "london", "id": None, "end": 0, "segments": []}


def test_the_library_is_started_again_when_it_is_gone(lender: GatewayProcess) -> None:
    assert get(lender, "/journal/default")[0] == 200
    children = Path(f"/proc/{lender.process.pid}/task/{lender.process.pid}/children")
    for pid in map(int, children.read_text().split()):
        if b"weft.gateway.journal.file_server" in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, signal.SIGKILL)
    assert len(numbers(lender, 0, 100)) == 100


def test_a_gateway_without_a_journal_says_so(tmp_path: Path) -> None:
    with (
        GatewayProcess(tmp_path, {"name": "bare"}) as gateway,
        pytest.raises(NotKnown, match="has no journal of service 'default'"),
    ):
        shelf(gateway).watch().ends()


def test_readers_who_do_not_read_hold_up_nobody(lender: GatewayProcess) -> None:
    name = next(each.path.name for each in shelf(lender).segments("london") if each.last < 0)
    idle = []
    for _ in range(70):
        connection = http.client.HTTPConnection("127.0.0.1", lender.port, timeout=20)
        connection.request("GET", f"/journal/default/blocks/{name}?first=0")
        idle.append(connection)
    with weft.Connection(lender.address) as publisher:
        publisher.publish("a.b", {"n": 0}, acknowledge=True)
    for each in idle:
        each.close()
    assert get(lender, "/journal/default")[0] == 200


def test_damage_costs_a_reader_elsewhere_what_is_damaged(tmp_path: Path) -> None:
    root = tmp_path / "data" / "journal"
    place = place_in(root, "default")
    written(place, 30).finish()
    written(place, 30, first=30).finish()
    list(seal_all(root, "default", "london"))
    written(place, 40, first=60).finish()
    first, _, last = segments_of(root, "default")
    data = bytearray(first.path.read_bytes())
    data[len(data) // 2] ^= 1
    first.path.write_bytes(data)
    data = bytearray(last.path.read_bytes())
    blocks = [each for each in blocks_in(bytes(data)) if isinstance(each, Block)]
    # The header of one, and the body of another.
    data[blocks[2].start + 20] ^= 1
    data[blocks[4].body + 1] ^= 1
    last.path.write_bytes(data)
    settings = {
        "name": "london",
        "data": str(tmp_path / "data"),
        "journal.patterns": [">"],
        "journal.seal": "never",
    }
    with GatewayProcess(tmp_path, settings) as gateway:
        wanted = Range(shelf(gateway), "london", 0, 100)
        with pytest.raises(Lost, match=r"positions 0 … 29 .* its checksum is"):
            list(batches_in(wanted, (b">",), may_lack=False))
        found = [
            position
            for batch in batches_in(wanted, (b">",), may_lack=True)
            for position in batch.column("position").to_pylist()
        ]
        assert found == [*range(30, 70), *range(80, 90)]


def test_nobody_learns_the_salt_of_a_segment(lender: GatewayProcess) -> None:
    (name,) = (each.path.name for each in shelf(lender).segments("london") if each.last < 0)
    (path,) = (lender.data / "journal").rglob(name)  # type: ignore[attr-defined]
    status, lent = get(lender, f"/journal/default/blocks/{name}?first=0")
    assert status == 200
    assert salt_of(path.read_bytes()).to_bytes(8, "little") not in lent


def test_readers_who_do_not_hang_up_hold_up_nobody(lender: GatewayProcess) -> None:
    with contextlib.ExitStack() as held:
        for _ in range(100):
            connection = http.client.HTTPConnection("127.0.0.1", lender.port, timeout=20)
            connection.request("GET", "/journal/default")
            held.callback(connection.close)
        assert get(lender, "/journal/default")[0] == 200
