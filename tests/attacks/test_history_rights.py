"""Keys that may not hear a subject, and every way to read what was published to it."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.attacks.gateway_process import WAIT_S, GatewayProcess

import weft
from weft.broker.auth.keys import Grant
from weft.errors import NotAllowed
from weft.gateway.keys.manage import make_key, new_record
from weft.journal.read.arrow_batches import Range, batches_in
from weft.journal.segment.file_names import segments_of
from weft.spark.remote import Lender, RemoteShelf
from weft.wire.address import addresses_from

HIDDEN_TEXT = "the-launch-code"
GRANTS = {
    "denied-subscribe": {"subscribe": Grant(deny=("secret.>",))},
    "denied-replay": {"replay": Grant(deny=("secret.>",))},
    "allowed-part": {
        "subscribe": Grant(allow=("open.>",)),
        "replay": Grant(allow=(">",)),
    },
    "allowed-no-subscribe": {"replay": Grant(allow=(">",))},
    "without-local": {"subscribe": Grant(allow=(">",)), "replay": Grant(allow=(">",))},
}


class Keep:
    """A gateway whose journal has a message that most of its keys may not read."""

    def __init__(self, gateway: GatewayProcess, data: Path, keys: dict[str, Path]) -> None:
        self.gateway = gateway
        self.data = data
        self.keys = keys

    def shelf(self, name: str) -> RemoteShelf:
        """The journal as Spark reads it with a key."""
        addresses = addresses_from(self.gateway.address)
        return RemoteShelf(addresses, "default", None, str(self.keys[name]), WAIT_S)

    def bodies(self, name: str) -> list[bytes]:
        """What Spark gets with a key."""
        wanted = Range(self.shelf(name), "besieged", 0, 2)
        found = batches_in(wanted, (b">", b"_LOCAL.>"), may_lack=False)
        return [body for batch in found for body in batch.column("payload").to_pylist()]


@pytest.fixture(scope="module")
def keep(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keep]:
    folder = tmp_path_factory.mktemp("keep")
    data = folder / "data"
    keys = {}
    for name in ("whole", *GRANTS):
        record = new_record(name, "service", "default")
        record = msgspec.structs.replace(record, rights=GRANTS.get(name, {}))
        keys[name] = folder / f"{name}.key"
        keys[name].write_text(make_key(data, record).text)
        keys[name].chmod(0o600)
    settings = {"data": str(data), "journal.patterns": [">", "_LOCAL.>"]}
    with GatewayProcess(folder, settings) as gateway:
        with weft.Connection(gateway.address, key=keys["whole"].read_text()) as connection:
            connection.publish("secret.a", {"text": HIDDEN_TEXT}, acknowledge=True)
            connection.publish("_LOCAL.a", {"text": "here"}, acknowledge=True)
        yield Keep(gateway, data, keys)


@pytest.mark.parametrize("name", GRANTS)
def test_a_lent_journal_is_not_read_past_a_right(keep: Keep, name: str) -> None:
    lender = Lender(
        addresses_from(keep.gateway.address)[0], "default", None, str(keep.keys[name]), WAIT_S
    )
    (segment,) = segments_of(keep.data / "journal", "default")
    for path in ("", "/position?time_ns=0", f"/blocks/{segment.path.name}?first=0"):
        with pytest.raises(NotAllowed, match="served whole"):
            lender.get(path)
    with pytest.raises(NotAllowed, match="served whole"):
        keep.bodies(name)


@pytest.mark.parametrize("name", [name for name in GRANTS if name != "without-local"])
def test_a_page_of_history_is_not_read_past_a_right(keep: Keep, name: str) -> None:
    key = keep.keys[name].read_text()
    with weft.Connection(keep.gateway.address, key=key) as connection:
        for patterns in (["secret.a"], [">"], ["open.a", "secret.*"]):
            with pytest.raises(NotAllowed):
                connection.send_request("_WEFT.ask.history", {"patterns": patterns, "position": 0})


def test_a_key_that_may_hear_everything_reads_everything(keep: Keep) -> None:
    assert any(HIDDEN_TEXT.encode() in body for body in keep.bodies("whole"))
