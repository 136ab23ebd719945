"""A key that Spark shows: to a gateway that lends its journal, and to one that is written to."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.attacks.gateway_process import GatewayProcess

import weft
from weft.broker.auth.keys import Grant
from weft.client.publish.encode import message_frame
from weft.errors import BadKey, BadOption, NotAllowed
from weft.gateway.keys.manage import make_key, new_record
from weft.spark.credentials import key_at
from weft.spark.options import READING, WRITING, read_options, write_options
from weft.spark.remote import RemoteShelf
from weft.spark.staging_client import StagedBatch, StagingClient
from weft.wire.address import addresses_from


class Locked:
    """A gateway with a journal and two keys, each in a file: `all` and `few`."""

    def __init__(self, gateway: GatewayProcess, folder: Path) -> None:
        self.gateway = gateway
        self.folder = folder

    def key_file(self, name: str) -> str:
        return str(self.folder / f"{name}.key")


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Locked]:
    folder = tmp_path_factory.mktemp("locked")
    rights = {"publish": Grant(allow=("a.>",)), "replay": Grant(allow=("a.>",))}
    wanted = {
        "all": new_record("all", "service", "default"),
        "few": msgspec.structs.replace(new_record("few", "service", "default"), rights=rights),
    }
    for name, record in wanted.items():
        file = folder / f"{name}.key"
        file.write_text(make_key(folder / "data", record).text)
        file.chmod(0o600)
    settings = {"data": str(folder / "data"), "journal.patterns": [">"], "drain_s": 0.2}
    with GatewayProcess(folder, settings) as gateway:
        key = key_at(str(folder / "all.key"))
        with weft.Connection(gateway.address, key=key) as connection:
            connection.publish("a.b", {"n": 1}, acknowledge=True)
        yield Locked(gateway, folder)


def shelf(locked: Locked, key_file: str | None) -> RemoteShelf:
    address = addresses_from(locked.gateway.address)
    return RemoteShelf(address, "default", None, key_file, 20.0)


def test_a_journal_is_lent_to_whoever_may_replay_all_of_it(locked: Locked) -> None:
    assert shelf(locked, locked.key_file("all")).watch().ends() == {"besieged": 1}
    with pytest.raises(BadKey, match="a key is needed"):
        shelf(locked, None).watch().ends()
    with pytest.raises(NotAllowed, match="may not read the journal of 'default'"):
        shelf(locked, locked.key_file("few")).watch().ends()


def test_rows_are_taken_from_whoever_may_publish_them(locked: Locked) -> None:
    options = {"gateways": locked.gateway.address, "keyFile": locked.key_file("few")}
    with StagingClient(write_options(options)) as gate:
        batch = StagedBatch("writer", 0)
        assert gate.stage(batch, "p", [message_frame("a.b", {"n": 2})]) == 1
        gate.release(batch, {"p": 1})
        with pytest.raises(NotAllowed, match="may not publish to 'b'"):
            gate.stage(StagedBatch("writer", 1), "p", [message_frame("b", {"n": 3})])
    with pytest.raises(BadKey, match="a key is needed"):
        StagingClient(write_options({"gateways": locked.gateway.address}))


def test_a_key_is_a_file_and_never_an_option() -> None:
    assert "keyFile" in READING
    assert "keyFile" in WRITING
    for options in (read_options, write_options):
        with pytest.raises(BadOption, match="no option 'key'"):
            options({"gateways": "127.0.0.1:1", "key": "wk_x"})


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert key_at(None) == ""
    with pytest.raises(BadOption, match=r"no\.key cannot be read"):
        key_at(str(tmp_path / "no.key"))
