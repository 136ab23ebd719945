import pytest

from weft.cli.teller import Teller
from weft.client.status import Status, What
from weft.errors import ConnectionLost, Overloaded, Refused, SlowReader


def test_losses_are_told_and_that_all_is_well_again(capsys: pytest.CaptureFixture[str]) -> None:
    tell = Teller()
    tell(Status(What.FAILED, "attempt 1 failed"))
    tell(Status(What.CONNECTED, "connected to g"))
    tell(Status(What.GAP, "3 messages were missed\x1b"))
    tell(Status(What.DISCONNECTED, "g was lost", SlowReader("too slow")))
    tell(Status(What.RECONNECTING, "in 0.1 s"))
    tell(Status(What.CONNECTED, "connected to g"))
    assert capsys.readouterr().err.splitlines() == [
        "weft: gap: 3 messages were missed\\x1b",
        "weft: disconnected: g was lost: too slow",
        "weft: connected: connected to g",
    ]


def test_what_makes_messages_be_lost_is_remembered() -> None:
    tell = Teller()
    tell(Status(What.FAILED, "attempt 1 failed"))
    tell(Status(What.CONNECTED, "connected to g"))
    tell(Status(What.GAP, "3 messages were missed"))
    assert tell.loss("2 messages") is None
    tell(Status(What.REFUSED, "a frame is refused", Refused("no")))
    refused = tell.loss("2 messages")
    assert isinstance(refused, Refused)
    assert str(refused) == "some of the 2 messages may be lost, as the gateway refused some"
    tell(Status(What.CONNECTED, "connected to g"))
    assert isinstance(tell.loss("2 messages"), ConnectionLost)


def test_what_is_dropped_is_remembered() -> None:
    tell = Teller()
    tell(Status(What.CONNECTED, "connected to g"))
    tell(Status(What.DROPPED, "what is published is dropped"))
    assert isinstance(tell.loss("2 messages"), Overloaded)
