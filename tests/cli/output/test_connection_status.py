import pytest

from weft.cli.output.connection_status import Teller
from weft.client.status import Gap, Status, What
from weft.errors import (
    ConnectionLost,
    Draining,
    Overloaded,
    Refused,
    Reserved,
    SlowReader,
    WeftError,
)


def test_losses_are_told_and_that_all_is_well_again(capsys: pytest.CaptureFixture[str]) -> None:
    tell = Teller()
    tell(Status(What.FAILED, "attempt 1 failed"))
    tell(Status(What.CONNECTED, "connected to g"))
    tell(Status(What.GAP, "3 messages were missed\x1b", gap=Gap("slow", 3)))
    tell(Status(What.REFUSED, "a frame to a is refused", Reserved("no")))
    tell(Status(What.DROPPED, "published messages are dropped", Overloaded("full")))
    tell(Status(What.DISCONNECTED, "g was lost", SlowReader("too slow")))
    tell(Status(What.RECONNECTING, "in 0.1 s"))
    tell(Status(What.CONNECTED, "connected to g"))
    tell(Status(What.GAP, "messages may have been missed", gap=Gap("reconnected")))
    assert capsys.readouterr().err.splitlines() == [
        "weft: gap: 3 messages were missed\\x1b",
        "weft: a frame to a is refused: no",
        "weft: published messages are dropped: full",
        "weft: disconnected from g: too slow; trying to connect again",
        "weft: connected again to g; messages may have been missed meanwhile",
    ]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ConnectionLost("the connection to g was ended by the gateway"), "ended by the gateway"),
        (Draining("the gateway closes the connection: draining"), "the gateway is closing down"),
    ],
)
def test_why_it_was_lost_is_said_once(
    capsys: pytest.CaptureFixture[str], error: WeftError, reason: str
) -> None:
    tell = Teller()
    tell(Status(What.CONNECTED, "connected to g"))
    tell(Status(What.DISCONNECTED, "g was lost", error))
    assert capsys.readouterr().err == (
        f"weft: disconnected from g: {reason}; trying to connect again\n"
    )


def test_every_attempt_that_is_refused_alike_is_told_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tell = Teller()
    tell(Status(What.CONNECTED, "connected to g"))
    tell(Status(What.DISCONNECTED, "g was lost"))
    for number in range(1, 4):
        tell(Status(What.FAILED, f"attempt {number} to connect failed", ConnectionLost("x")))
        tell(Status(What.REFUSED, f"attempt {number} to connect failed", Refused("no")))
    assert capsys.readouterr().err.splitlines() == [
        "weft: disconnected from g; trying to connect again",
        "weft: refused: no; trying to connect again",
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
    tell(Status(What.DROPPED, "published messages are dropped"))
    assert isinstance(tell.loss("2 messages"), Overloaded)
