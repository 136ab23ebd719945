"""What no gateway should say about channels, and what is too much of them."""

import pytest
from tests.mesh.mesh import meshed
from tests.mesh.rooms import ROOM, begin, keys, opened

from weft.errors import ChannelExists, TooMany
from weft.mesh.channels.coordinator import HELD_HERE_MAX, OPENINGS_MAX
from weft.mesh.channels.protocol import (
    ChannelAnnouncement,
    ChannelAsk,
    ChannelClosedNotice,
    ChannelDropped,
    ChannelRecords,
    ChannelsHeld,
    ChannelsSeen,
    ChannelVote,
    ChannelWord,
    Record,
)
from weft.mesh.protocol import RoutedWord


@pytest.mark.req("RLY-14")
def test_what_nobody_should_say_about_channels_is_counted_and_changes_nothing() -> None:
    net = meshed(2)
    channel = opened(net[1], "a").channel
    hostile = net[2].traffic.send_word
    forged = Record(b"hall", net[1].node, 1, b"k" * 32, b"s" * 32)
    half = Record(b"hall", net[2].node, 1, b"k" * 32)
    words: list[ChannelWord] = [
        ChannelAsk(1, forged),
        ChannelAsk(2, half),
        ChannelRecords((half,)),
        ChannelRecords((Record(b"\xff", net[2].node, 1),)),
        ChannelClosedNotice(Record(b"_WEFT.x", net[2].node, 1)),
        ChannelVote(99, "confirmed", 1 << 40),
        ChannelsSeen(99, (b"x" * 16,), (channel.id,)),
        ChannelDropped(1, ROOM, channel.id),
        ChannelsHeld(1, (ChannelAnnouncement(b"y" * 16, 5),)),
    ]
    for word in words:
        hostile(1, word)
        net[2].flush()
        net.carry()
    assert net[1].refused["BadChannel"] == 5
    assert net[1].channels.table.all() == [channel]
    assert opened(net[2], "b").error is ChannelExists


@pytest.mark.req("RLY-14")
def test_nobody_can_give_the_id_of_a_channel_other_keys() -> None:
    net = meshed(2)
    channel = opened(net[1], "a").channel
    other = channel.record._replace(stored=b"z" * 32)
    net[2].traffic.send_word(1, ChannelRecords((other,)))
    net[2].flush()
    net.carry()
    known = net[1].channels.table.get(channel.id)
    assert known is not None
    assert known.record.verifier == keys("a")
    assert other.channel("weather") != channel.id


def test_there_are_not_more_openings_at_a_time_than_a_limit() -> None:
    net = meshed(2)
    for each in range(OPENINGS_MAX):
        begin(net[1], "a", b"room%d" % each)
    assert "already" in str(begin(net[1], "a", b"hall").told[0])


def test_a_gateway_has_a_limit_of_channels_with_members() -> None:
    net = meshed(2)
    channel = opened(net[2], "a").channel
    admissions = net[1].channels.admissions
    members = [net[1].local().peer for _ in range(HELD_HERE_MAX // 100)]
    for each in range(HELD_HERE_MAX):
        admissions.admit(members[each // 100], b"%032x" % each, b"x")
    assert begin(net[1], "a", b"hall").error is TooMany
    with pytest.raises(TooMany):
        net[1].channels.admit(net[1].local().peer, channel)


def test_a_gateway_that_does_not_learn_what_a_channel_is_is_not_told_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    net = meshed(2)
    monkeypatch.setattr("weft.mesh.channels.directory.CHANNELS_MAX", 1)
    net[2].channels.table.add(b"x" * 16, Record(b"hall", net[2].node, 1))
    said: list[object] = []
    mesh = net[1].channels.mesh
    assert mesh is not None

    def say(number: int, word: RoutedWord) -> bool:
        said.append(word)
        return mesh.say(number, word)

    net[1].channels.mesh = mesh._replace(say=say)
    opened(net[1])
    net.wait(0.5)
    # When it was opened, and once each time that everybody is told of everything.
    assert 0 < sum(isinstance(word, ChannelRecords) for word in said) <= 3
