"""What the log of a gateway says of its links."""

import logging

import pytest
from tests.mesh.mesh import Net, meshed

from weft.gateway.mesh.link_log import KINDS_MAX, WARN_EVERY_S, MeshLog


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    found = [(each.levelno, each.getMessage()) for each in caplog.records]
    caplog.clear()
    return found


@pytest.fixture
def net(caplog: pytest.LogCaptureFixture) -> Net:
    caplog.set_level(logging.INFO)
    return meshed(2)


def test_links_that_come_and_go_are_logged_with_the_reason(
    net: Net, caplog: pytest.LogCaptureFixture
) -> None:
    log = MeshLog()
    log.look(net[1].fabric)
    log.look(net[1].fabric)
    assert lines(caplog) == [(logging.INFO, "linked with gateway gateway-2")]
    net[2].fabric.leave()
    net.wait(3)
    log.look(net[1].fabric)
    text = "no longer linked with gateway gateway-2: it is closing down"
    assert lines(caplog) == [(logging.INFO, text)]


def test_a_link_that_broke_is_a_warning(net: Net, caplog: pytest.LogCaptureFixture) -> None:
    log = MeshLog()
    log.look(net[1].fabric)
    net.kill(2)
    net.wait(0.1)
    lines(caplog)
    log.look(net[1].fabric)
    text = "no longer linked with gateway gateway-2: its connection was closed"
    assert lines(caplog) == [(logging.WARNING, text)]


def test_a_link_whose_end_is_not_finished_is_logged_once_its_reason_is_known(
    net: Net, caplog: pytest.LogCaptureFixture
) -> None:
    log = MeshLog()
    log.look(net[1].fabric)
    lines(caplog)
    [link] = net[1].fabric.links.values()
    link.ending = "for a reason"
    link.peer.end(None)
    log.look(net[1].fabric)
    assert lines(caplog) == []
    net[1].flush()
    log.look(net[1].fabric)
    text = "no longer linked with gateway gateway-2: for a reason"
    assert lines(caplog) == [(logging.INFO, text)]


def test_gateways_of_one_name_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    net = meshed(2)
    log = MeshLog()
    log.look(net[1].fabric)
    assert "called" not in caplog.text
    net.names[3] = "gateway-2"
    net.begin(3)
    net.wait(3)
    log.look(net[1].fabric)
    log.look(net[1].fabric)
    where = f"{net[2].address}, {net[3].address}"
    text = f"2 gateways are named gateway-2: {where}; give each its own name"
    assert lines(caplog).count((logging.WARNING, text)) == 1


def test_a_warning_is_logged_once_a_minute_with_the_number_of_the_others(
    net: Net, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    log = MeshLog(clock)
    log.look(net[1].fabric)
    lines(caplog)
    for _ in range(3):
        net[1].fabric.events.warn("Test", "a", "text a")
    net[1].fabric.events.warn("Test", "b", "text b")
    log.look(net[1].fabric)
    assert [text for _, text in lines(caplog)] == ["text a", "text b"]
    clock.now += WARN_EVERY_S
    net[1].fabric.events.warn("Test", "a", "text a")
    log.look(net[1].fabric)
    assert lines(caplog) == [(logging.WARNING, "text a (2 more since the last such line)")]


def test_more_kinds_of_warnings_than_are_told_apart_share_a_line(
    net: Net, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    log = MeshLog(clock)
    log.look(net[1].fabric)
    lines(caplog)
    for about in range(KINDS_MAX + 5):
        net[1].fabric.events.warn("Test", str(about), f"text {about}")
    log.look(net[1].fabric)
    assert len(lines(caplog)) == KINDS_MAX + 1
    clock.now += WARN_EVERY_S
    net[1].fabric.events.warn("Test", "new", "text")
    log.look(net[1].fabric)
    assert len(lines(caplog)) == 1
