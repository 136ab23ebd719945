from weft.mesh.channels.directory import CHANNELS_MAX, STALE_NS, ChannelTable, KnownChannel
from weft.mesh.channels.leases import LeaseClaim
from weft.mesh.channels.protocol import ChannelAnnouncement, Record

SERVICE = "chat"
OPEN = Record(b"room", b"o" * 16, 1)
PROTECTED = OPEN._replace(stored=b"k" * 32, server=b"s" * 32)


def known(table: ChannelTable, record: Record, *places: int) -> KnownChannel:
    channel = table.add(record.channel(SERVICE), record)
    assert channel is not None
    for number in places:
        table.hear(LeaseClaim(number, 1), ChannelAnnouncement(channel.id, 2, 3), 0)
    return channel


def nobody_gone(_number: int) -> bool:
    return False


def test_a_channel_is_there_while_some_gateway_has_members() -> None:
    table = ChannelTable()
    channel = known(table, PROTECTED, 1, 2)
    assert (table.named(b"room"), channel.members) == ([channel], 4)
    table.drop(LeaseClaim(1, 2), channel.id)
    assert table.all() == [channel]
    table.drop(LeaseClaim(2, 2), channel.id)
    assert (table.named(b"room"), table.all(), len(table)) == ([], [], 0)


def test_what_is_only_known_and_held_nowhere_is_not_there() -> None:
    table = ChannelTable()
    known(table, PROTECTED)
    assert (table.named(b"room"), table.all()) == ([], [])
    table.expire(0, nobody_gone)
    assert len(table) == 0


def test_what_was_not_heard_of_for_too_long_is_forgotten() -> None:
    table = ChannelTable()
    channel = known(table, PROTECTED, 1)
    table.hear(LeaseClaim(2, 1), ChannelAnnouncement(channel.id, 1), 5)
    table.expire(STALE_NS, nobody_gone)
    assert list(channel.places) == [2]
    table.expire(STALE_NS, lambda number: number == 2)
    assert table.get(channel.id) is None


def test_an_unknown_channel_is_not_learnt_from_its_members() -> None:
    table = ChannelTable()
    assert table.hear(LeaseClaim(1, 1), ChannelAnnouncement(b"x" * 16, 1), 0) is None
    assert len(table) == 0


def test_channels_without_a_password_that_were_opened_apart_are_one() -> None:
    table = ChannelTable()
    later = OPEN._replace(owner=b"p" * 16, epoch=4)
    first = known(table, later, 1)
    assert known(table, OPEN, 2) is first
    assert first.record == OPEN
    known(table, later, 3)
    assert (first.record, sorted(first.places)) == (OPEN, [1, 2, 3])


def test_two_protected_channels_of_one_name_are_two() -> None:
    table = ChannelTable()
    one = known(table, PROTECTED, 1)
    other = known(table, PROTECTED._replace(stored=b"l" * 32), 2)
    assert one is not other
    assert set(map(id, table.named(b"room"))) == {id(one), id(other)}
    table.forget(one.id)
    assert table.named(b"room") == [other]


def test_ranks_say_which_of_two_stays() -> None:
    table = ChannelTable()
    without = known(table, OPEN._replace(epoch=9), 1)
    early = known(table, PROTECTED, 1)
    late = known(table, PROTECTED._replace(epoch=2), 1)
    assert without.rank < early.rank < late.rank
    twin = known(table, PROTECTED._replace(owner=b"p" * 16), 1)
    assert (twin.rank > early.rank) == (twin.id < early.id)


def test_there_are_not_more_than_a_limit() -> None:
    table = ChannelTable()
    for each in range(CHANNELS_MAX):
        table.add(each.to_bytes(16), OPEN)
    assert table.add(b"x" * 16, OPEN) is None


def test_words_that_overtake_each_other_count_in_the_order_they_were_said() -> None:
    table = ChannelTable()
    channel = known(table, PROTECTED)
    table.hear(LeaseClaim(1, 5), ChannelAnnouncement(channel.id, 3), 0)
    table.hear(LeaseClaim(1, 4), ChannelAnnouncement(channel.id, 9), 1)
    table.drop(LeaseClaim(1, 3), channel.id)
    assert channel.places[1].members == 3
