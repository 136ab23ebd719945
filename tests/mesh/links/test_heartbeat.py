"""Whether the gateways at the other ends of links are there."""

from tests.mesh.impostor import Impostor, Line
from tests.mesh.mesh import Net, meshed

from weft.mesh.links.heartbeat import BEAT_NS, SILENT_NS, UNANSWERED_NS
from weft.mesh.links.link import Link
from weft.mesh.protocol import Ping, Pong

_S = 1_000_000_000


def linked() -> tuple[Net, Line, Link]:
    net = meshed(1)
    line = Impostor(net).join(net[1])
    (link,) = net[1].fabric.links.values()
    return net, line, link


def test_everyone_is_pinged_now_and_then() -> None:
    net, line, _ = linked()
    before = len(line.words(Ping))
    net.wait(10 * BEAT_NS / _S)
    assert 8 <= len(line.words(Ping)) - before <= 11


def test_whoever_is_silent_is_given_up() -> None:
    net, line, link = linked()
    line.is_answering = False
    net.wait(SILENT_NS / _S - 0.5)
    assert not line.is_over
    net.wait(1.5)
    assert line.errors == ["Silent"]
    assert link not in net[1].fabric.links.values()


def test_whoever_speaks_and_does_not_answer_is_given_up_later() -> None:
    net, line, _ = linked()
    line.is_answering = False
    for _ in range(int(UNANSWERED_NS / _S) - 1):
        line.say(Ping(1, 0))
        net.wait(1)
    assert not line.is_over
    for _ in range(3):
        line.say(Ping(1, 0))
        net.wait(1)
    assert line.errors == ["Silent"]


def test_silence_does_not_count_while_this_gateway_stood_still() -> None:
    net, line, _ = linked()
    net.now_ns += 20 * _S
    net.wait(0.5)
    assert not line.is_over


def test_how_long_answers_take_is_known_and_smooth() -> None:
    _, _, link = linked()
    link.rtt_ns = 0
    link.token, link.pinged_ns = 7, 100
    link.answered(900)
    assert link.rtt_ns == 800
    link.token, link.pinged_ns = 8, 1000
    link.answered(1000)
    assert link.rtt_ns == 700
    assert link.unanswered_ns(5000) == 0


def test_only_the_ping_that_waits_is_answered() -> None:
    net, line, link = linked()
    line.is_answering = False
    net.wait(1)
    token = link.token
    line.say(Pong(token + 1000))
    assert link.token == token
    line.say(Pong(token))
    assert link.token == 0


def test_a_link_that_is_over_is_not_pinged() -> None:
    net, line, link = linked()
    before = len(line.words(Ping))
    link.peer.end(None)
    net.now_ns += BEAT_NS
    net[1].tell_time()
    net[1].fabric.tick()
    assert len(line.words(Ping)) == before
