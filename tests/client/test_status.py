import logging

import pytest

from weft.client.status import Reporter, Status, What
from weft.errors import Unreachable


def reporter(told: list[Status]) -> Reporter:
    return Reporter(logging.getLogger("weft.test"), "me.1", told.append)


def test_a_status_is_logged_and_told(caplog: pytest.LogCaptureFixture) -> None:
    told: list[Status] = []
    status = Status(What.FAILED, "attempt 1 failed", Unreachable("nobody there"))
    reporter(told).report(status)
    assert told == [status]
    assert caplog.messages == ["me.1: attempt 1 failed: nobody there"]


@pytest.mark.parametrize("what", [What.CONNECTED, What.RECONNECTING, What.CLOSED])
def test_what_is_well_is_logged_quietly(what: What, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    reporter([]).report(Status(what, "well"))
    assert [record.levelname for record in caplog.records] == ["INFO"]


@pytest.mark.parametrize("what", [What.REFUSED, What.DISCONNECTED, What.GAP, What.DROPPED])
def test_what_is_wrong_is_logged_loudly(what: What, caplog: pytest.LogCaptureFixture) -> None:
    reporter([]).report(Status(what, "wrong"))
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_a_status_callback_that_raises_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def fails(_: Status) -> None:
        raise RuntimeError("broken callback")

    Reporter(logging.getLogger("weft.test"), "me.1", fails).report(Status(What.GAP, "lost"))
    assert "the status callback raised" in caplog.text
    assert "broken callback" in caplog.text


def test_a_handler_that_raises_is_reported_with_its_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    told: list[Status] = []
    error = ValueError("bad value")
    reporter(told).handler_failed("a.*", error)
    assert (told[0].what, told[0].error) == (What.HANDLER, error)
    (record,) = caplog.records
    assert record.exc_info is not None
    assert record.exc_info[1] is error


def test_nobody_has_to_listen() -> None:
    Reporter(logging.getLogger("weft.test"), "me.1").report(Status(What.CLOSED, "closed"))
