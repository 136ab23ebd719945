"""How gateways come to know the same of each other."""

from tests.mesh.impostor import Impostor, Line
from tests.mesh.mesh import Net, meshed

from weft.mesh.membership.gossip import MISMATCHES
from weft.mesh.protocol import AdvertWord, Known, LinkReady, Ping, Snapshot, Summary


def linked() -> tuple[Net, Impostor, Line]:
    net = meshed(2)
    rogue = Impostor(net)
    return net, rogue, rogue.dial(net[1])


def test_two_that_were_just_linked_tell_what_they_know() -> None:
    net, _, line = linked()
    (summary,) = line.words(Summary)
    assert summary.is_last
    assert {known.node for known in summary.entries} == {net[1].node, net[2].node}
    assert line.words(LinkReady) == []


def test_whoever_tells_what_it_knows_is_sent_the_rest_and_that_this_was_all() -> None:
    net, _, line = linked()
    there = net[2].fabric.members.own
    net[2].local(b"a")
    net.wait(0.5)
    line.heard.clear()
    line.say(Summary((there.known,), False), Summary((), True))
    assert len(line.words(AdvertWord)) == 1
    assert line.words(Snapshot) == []
    assert line.words(LinkReady) == [LinkReady()]


def test_whoever_has_the_advert_and_not_what_is_wanted_is_sent_that() -> None:
    net, _, line = linked()
    net[2].listen(b"a")
    line.heard.clear()
    own, other = net[1].fabric.members.own.known, net[2].fabric.members.own.known
    line.say(Summary((own, other._replace(version=0)), True))
    assert line.words(AdvertWord) == []
    assert [word.node for word in line.words(Snapshot)] == [net[2].node]


def test_whoever_knows_more_is_sent_nothing() -> None:
    net, _, line = linked()
    line.heard.clear()
    entries = [Known(node.node, 1 << 60, 1, 9) for node in net.nodes.values()]
    line.say(Summary(tuple(entries), True))
    assert line.words(AdvertWord) == []
    assert line.words(LinkReady) == [LinkReady()]


def test_whoever_knows_something_else_for_a_while_is_compared_with() -> None:
    net = meshed(1)
    line = Impostor(net).join(net[1])
    net.wait(1)
    line.heard.clear()
    for _ in range(MISMATCHES - 1):
        line.say(Ping(1, 7))
        net.wait(0.2)
    assert line.words(Summary) == []
    line.say(Ping(1, 7))
    assert len(line.words(Summary)) == 1


def test_whoever_knows_the_same_again_is_not_compared_with() -> None:
    net = meshed(1)
    line = Impostor(net).join(net[1])
    net.wait(1)
    line.heard.clear()
    for turn in range(4 * MISMATCHES):
        line.say(Ping(1, 7 if turn % MISMATCHES else net[1].fabric.members.digest()))
        net.wait(0.2)
    assert line.words(Summary) == []


def test_news_of_what_is_wanted_leave_the_ways_as_they_are() -> None:
    net = meshed(3)
    net.wait(1)
    version = net[1].traffic._outgoing.version
    net[3].listen(b"a", b"b.>")
    assert net[1].traffic._outgoing.version == version


def test_what_was_missed_is_made_up_for() -> None:
    net = meshed(3)
    heard = net[2].listen(b"a")
    net.cut(1, 2)
    net.cut(1, 3)
    net[1].local(b"b")
    net.wait(5)
    net.join(1, 2)
    net.join(1, 3)
    net.wait(6)
    assert net.is_whole()
    net[1].local().publish(b"a", b"x")
    net.carry()
    assert heard.messages() == [b"x"]
