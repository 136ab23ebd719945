import pytest
from tests.mesh.mesh import Net, meshed
from tests.mesh.rooms import ROOM, begin, errors, heal, isolate, joined, keys, opened, talk

from weft.errors import ChannelContested, ChannelExists, NoMajority, WeftError
from weft.mesh.channels.directory import KnownChannel
from weft.mesh.settings import Rules


@pytest.mark.req("RLY-10", "RLY-11", "RLY-12")
@pytest.mark.parametrize("password", ["", "a"])
def test_every_gateway_knows_of_a_channel_that_was_opened_anywhere(password: str) -> None:
    net = meshed(3)
    channel = opened(net[2], password).channel
    for node in net.nodes.values():
        known = node.channels.table.get(channel.id)
        assert known is not None
        assert known.record == channel.record
        assert known.places[2].members == 1


@pytest.mark.req("RLY-12")
def test_a_channel_is_known_elsewhere_without_a_moment_passing() -> None:
    net = meshed(2)
    result = begin(net[1], "a")
    net.carry()
    assert [each.id for each in net[2].channels.table.named(ROOM)] == [result.channel.id]


@pytest.mark.req("RLY-12")
def test_a_gateway_that_comes_later_learns_of_all_channels() -> None:
    net = meshed(2)
    channel = opened(net[1], "a").channel
    net.begin(3)
    net.wait(3)
    assert net[3].channels.table.get(channel.id) is not None


@pytest.mark.req("RLY-11")
@pytest.mark.parametrize("password", ["", "b"])
def test_a_name_that_is_taken_is_refused_everywhere(password: str) -> None:
    net = meshed(3)
    opened(net[1], "a")
    assert opened(net[1], password).error is ChannelExists
    assert opened(net[3], password).error is ChannelExists


@pytest.mark.req("RLY-11")
def test_a_gateway_that_has_not_heard_of_a_channel_is_told_by_one_that_has() -> None:
    net = meshed(3)
    opened(net[1], "a")
    known = net[3].channels.table.all()[0]
    net[3].channels.table.forget(known.id)
    net[3].channels.promises.end(ROOM, known.id)
    result = begin(net[3], "b")
    assert result.told == []
    net.carry()
    assert result.error is ChannelExists


@pytest.mark.req("RLY-13")
def test_of_two_at_once_one_at_most_opens_a_protected_channel() -> None:
    net = meshed(3)
    one, other = begin(net[1], "a"), begin(net[2], "b")
    net.carry()
    net.wait(3)
    ends = [one.error, other.error]
    assert ends.count(None) <= 1
    assert set(ends) <= {None, ChannelContested, ChannelExists}
    # Nobody holds the name by a promise that came to nothing.
    if None not in ends:
        assert opened(net[3], "c").error is None


@pytest.mark.req("RLY-13")
def test_two_at_once_without_a_password_are_in_one_channel() -> None:
    net = meshed(3)
    one, other = begin(net[1]), begin(net[2])
    net.carry()
    net.wait(1)
    assert one.channel.id == other.channel.id
    guest = joined(net[2])
    talk(one.local, b"hello")
    net.carry()
    assert guest.messages() == [b"hello"]


def test_a_second_opening_here_does_not_overtake_the_first() -> None:
    net = meshed(2)
    first = begin(net[1], "a")
    assert begin(net[1], "b").error is ChannelContested
    net.carry()
    assert first.error is None


@pytest.mark.req("RLY-14")
def test_what_is_said_in_a_channel_is_heard_at_other_gateways_and_only_in_it() -> None:
    net = meshed(3)
    room = opened(net[1], "a")
    opened(net[2], "b", b"hall")
    in_room, in_hall = joined(net[3]), joined(net[3], b"hall")
    everything = net[3].listen(b">")
    talk(room.local, b"hello")
    net.carry()
    assert in_room.messages() == [b"hello"]
    assert (in_hall.messages(), everything.messages()) == ([], [])


@pytest.mark.req("RLY-15")
def test_a_protected_channel_is_not_opened_by_a_minority_which_names_who_is_missing() -> None:
    net = meshed(3)
    isolate(net, 1)
    net.wait(4)
    result = opened(net[1], "a")
    assert result.error is NoMajority
    assert "1 of 3 gateways agree" in str(result.told[0])
    assert "london-2, london-3" in str(result.told[0]) or result.silent


@pytest.mark.req("RLY-15")
def test_an_open_channel_is_opened_by_a_minority_and_merges() -> None:
    net = meshed(3)
    isolate(net, 1)
    net.wait(4)
    here, there = opened(net[1]), opened(net[2])
    assert here.channel.id == there.channel.id
    assert len(here.silent) == 2
    heal(net)
    net.wait(6)
    guest = joined(net[3])
    talk(here.local, b"1")
    talk(there.local, b"2")
    net.carry()
    assert sorted(guest.messages()) == [b"1", b"2"]
    assert net[3].channels.table.all()[0].members == 3


@pytest.mark.req("RLY-15")
def test_a_silent_gateway_is_waited_for_no_longer_than_stated() -> None:
    net = meshed(3)
    for pipe in net.between(1, 3) + net.between(2, 3):
        pipe.is_dead = True
    result = begin(net[1])
    net.carry()
    net.wait(1.0)
    assert result.told == []
    net.wait(1.5)
    assert result.error is None
    assert len(result.silent) == 1


@pytest.mark.req("RLY-13", "RLY-14")
def test_two_that_were_opened_apart_never_mix_and_the_loser_is_told() -> None:
    net = Net()
    for place in (1, 2):
        net.begin(place, Rules(join=()))
    net.wait(1)
    one, other = opened(net[1], "a"), opened(net[2], "b")
    members = {1: joined(net[1]), 2: joined(net[2])}
    net[1].fabric.dialling.targets.fix(net[2].address)
    for _ in range(10):
        talk(members[1], b"a")
        talk(members[2], b"b")
        net.wait(0.2)
        assert set(members[1].messages()) <= {b"a"}
        assert set(members[2].messages()) <= {b"b"}
        if not (members[1].peer.channels and members[2].peer.channels):
            break
    net.wait(12)
    told = [errors(one.local), errors(other.local)]
    assert sorted(map(bool, told)) == [False, True]
    assert {name for names in told for name in names} == {"ChannelLost"}
    assert len(net[1].channels.table.named(ROOM)) == len(net[2].channels.table.named(ROOM)) == 1


@pytest.mark.req("RLY-13")
def test_what_a_majority_opened_meanwhile_stays() -> None:
    net = meshed(3)
    before = opened(net[1], "a")
    isolate(net, 1)
    net.wait(14)
    after = opened(net[2], "b")
    assert after.error is None
    heal(net)
    net.wait(8)
    assert errors(before.local) == ["ChannelLost"]
    assert after.local.peer.channels
    assert [each.id for each in net[1].channels.table.named(ROOM)] == [after.channel.id]


@pytest.mark.req("RLY-13")
def test_a_channel_with_a_password_stays_before_one_without() -> None:
    net = meshed(3)
    isolate(net, 1)
    net.wait(4)
    without, protected = opened(net[1]), opened(net[2], "a")
    heal(net)
    net.wait(6)
    assert errors(without.local) == ["ChannelLost"]
    assert protected.local.peer.channels


@pytest.mark.req("RLY-19")
def test_a_channel_ends_everywhere_with_its_last_member() -> None:
    net = meshed(3)
    room = opened(net[1], "a")
    guest = joined(net[2])
    room.local.peer.end(None)
    net[1].flush()
    net.wait(0.5)
    assert list(net[3].channels.table.all()[0].places) == [2]
    net[2].channels.admissions.leave(guest.peer, next(iter(guest.peer.channels)))
    net.wait(0.5)
    for node in net.nodes.values():
        assert node.channels.table.all() == []
    # And its name is free at once.
    assert opened(net[3], "b").error is None


@pytest.mark.req("RLY-12")
def test_a_channel_outlives_the_gateway_where_it_was_opened() -> None:
    net = meshed(3)
    channel = opened(net[1], "a").channel
    guest = joined(net[2])
    net.kill(1)
    net.wait(10)
    assert guest.peer.channels
    for place in (2, 3):
        known = net[place].channels.table.get(channel.id)
        assert known is not None
        assert list(known.places) == [2]
    assert opened(net[3], "b").error is ChannelExists


def test_a_channel_of_a_gateway_that_died_alone_is_forgotten() -> None:
    net = meshed(3)
    opened(net[1], "a")
    net.kill(1, is_dark=True)
    net.wait(9)
    assert net[2].channels.table.all() == []
    assert opened(net[2], "b").error is None


def test_who_is_gone_before_its_channel_is_open_leaves_none_behind() -> None:
    net = meshed(3)
    node = net[1]
    told: list[KnownChannel | WeftError] = []
    node.channels.open(
        node.local().peer, ROOM, keys("a"), lambda result, _silent: told.append(result)
    )
    node.flush()
    net.wait(1)
    assert isinstance(told[0], KnownChannel)
    assert [each.channels.table.all() for each in net.nodes.values()] == [[], [], []]
    assert opened(net[2], "b").error is None


def test_a_channel_is_closed_for_everybody() -> None:
    net = meshed(3)
    room = opened(net[1])
    guest = joined(net[2])
    net[3].channels.close(net[3].channels.table.all()[0])
    net[3].flush()
    net.wait(3)
    assert set(errors(room.local) + errors(guest)) == {"ChannelClosed"}
    assert [each.channels.table.all() for each in net.nodes.values()] == [[], [], []]
    # One without a password has the same id again, and is another one all the same.
    assert opened(net[2]).error is None
    assert len(net[1].channels.table.all()) == 1


@pytest.mark.parametrize("password", ["", "a"])
def test_a_gateway_that_missed_the_end_of_a_channel_is_told_when_it_is_back(password: str) -> None:
    net = meshed(3)
    opened(net[1], password)
    guest = joined(net[2])
    isolate(net, 2)
    net.wait(4)
    net[3].channels.close(net[3].channels.table.all()[0])
    net[3].flush()
    net.wait(4)
    assert errors(guest) == []
    heal(net)
    net.wait(6)
    assert set(errors(guest)) == {"ChannelClosed"}
    assert [each.channels.table.all() for each in net.nodes.values()] == [[], [], []]


@pytest.mark.req("RLY-13")
def test_gateways_that_left_in_order_do_not_count_and_lost_ones_do() -> None:
    net = meshed(3)
    net[3].fabric.leave()
    net.wait(3)
    net.kill(3)
    assert len(net[1].channels.voters) == 2
    net.kill(2)
    net.wait(120)
    assert len(net[1].channels.voters) == 2
    assert opened(net[1], "a").error is NoMajority
    net.now_ns += 3_600_000_000_000
    net.wait(2)
    assert opened(net[1], "a").error is None


def test_a_least_number_of_gateways_counts_although_they_never_met() -> None:
    net = Net()
    net.begin(1, Rules(join=())).channels.voters.least = 3
    net.wait(1)
    assert opened(net[1], "a").error is NoMajority
    assert opened(net[1], "").error is None
