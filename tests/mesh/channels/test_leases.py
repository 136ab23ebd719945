import pytest

from weft.mesh.channels.leases import (
    CONFIRMED,
    CONTESTED,
    FAILED,
    LEASE_NS,
    NAMES_MAX,
    OUTDATED,
    LeaseClaim,
    Note,
    Promises,
)

ONE = Note(b"room", 1, b"1" * 16)
OTHER = Note(b"room", 2, b"2" * 16)


def test_a_name_is_promised_to_one_channel_at_a_time() -> None:
    promises = Promises()
    assert promises.open(ONE, LeaseClaim(7, 1), 0) == CONFIRMED
    assert promises.open(OTHER, LeaseClaim(8, 1), LEASE_NS - 1) == CONTESTED
    assert promises.open(OTHER, LeaseClaim(8, 1), LEASE_NS) == CONFIRMED


@pytest.mark.req("RLY-13")
def test_no_epoch_is_promised_twice() -> None:
    promises = Promises()
    promises.open(ONE, LeaseClaim(7, 1), 0)
    promises.drop(ONE.name, ONE.channel, LeaseClaim(7, 1))
    assert promises.open(OTHER._replace(epoch=1), LeaseClaim(8, 1), 1) == OUTDATED
    assert promises.open(OTHER, LeaseClaim(8, 1), 1) == CONFIRMED
    assert promises.epoch(b"room") == 2


def test_every_holder_prolongs_a_promise_by_itself() -> None:
    promises = Promises()
    promises.open(ONE, LeaseClaim(7, 1), 0)
    assert promises.prolong(ONE, LeaseClaim(8, 1), LEASE_NS // 2)
    promises.drop(ONE.name, ONE.channel, LeaseClaim(7, 1))
    assert promises.open(OTHER, LeaseClaim(9, 1), LEASE_NS) == CONTESTED
    promises.drop(ONE.name, ONE.channel, LeaseClaim(8, 1))
    assert promises.open(OTHER, LeaseClaim(9, 1), LEASE_NS) == CONFIRMED


def test_a_channel_that_is_there_may_have_its_name_again_if_nobody_else_has_it() -> None:
    promises = Promises()
    promises.open(OTHER, LeaseClaim(8, 1), 0)
    assert not promises.prolong(ONE, LeaseClaim(7, 1), 1)
    assert promises.prolong(ONE, LeaseClaim(7, 1), LEASE_NS)
    # The last epoch is not forgotten: whoever opens needs a later one.
    assert promises.epoch(b"room") == 2


def test_a_drop_of_another_channel_means_nothing() -> None:
    promises = Promises()
    promises.open(ONE, LeaseClaim(7, 1), 0)
    promises.drop(ONE.name, OTHER.channel, LeaseClaim(7, 1))
    promises.end(ONE.name, OTHER.channel)
    promises.drop(b"hall", ONE.channel, LeaseClaim(7, 1))
    assert promises.open(OTHER, LeaseClaim(8, 1), 1) == CONTESTED


def test_the_end_of_a_channel_frees_its_name_whoever_holds_it() -> None:
    promises = Promises()
    promises.open(ONE, LeaseClaim(7, 1), 0)
    promises.prolong(ONE, LeaseClaim(8, 1), 0)
    promises.end(ONE.name, ONE.channel)
    assert promises.open(OTHER, LeaseClaim(9, 1), 1) == CONFIRMED


def test_a_promise_is_written_down_before_it_counts_and_once() -> None:
    kept: list[Note] = []
    promises = Promises(kept.append)
    promises.open(ONE, LeaseClaim(7, 1), 0)
    promises.prolong(ONE, LeaseClaim(7, 1), 1)
    promises.prolong(ONE, LeaseClaim(8, 1), 2)
    assert kept == [ONE]


def test_what_cannot_be_written_down_is_not_promised() -> None:
    def fail(_note: Note) -> None:
        raise OSError("no space left")

    promises = Promises(fail)
    assert promises.open(ONE, LeaseClaim(7, 1), 0) == FAILED
    assert not promises.prolong(ONE, LeaseClaim(7, 1), 0)
    assert promises.epoch(b"room") == 0


@pytest.mark.req("RLY-13")
def test_a_gateway_that_begins_anew_keeps_its_promises_for_a_whole_lease() -> None:
    before = Promises()
    before.open(ONE, LeaseClaim(7, 1), 0)
    after = Promises()
    kept: list[Note] = []
    after.recall(before.notes(), kept.append, 1000)
    assert after.open(OTHER, LeaseClaim(8, 1), 1000 + LEASE_NS - 1) == CONTESTED
    assert after.prolong(ONE, LeaseClaim(7, 1), 1000)
    assert after.open(OTHER, LeaseClaim(8, 1), 1000 + LEASE_NS) == CONFIRMED
    assert kept == [OTHER]


def test_of_too_many_names_one_without_a_holder_is_forgotten() -> None:
    promises = Promises()
    for each in range(NAMES_MAX):
        promises.open(Note(b"%d" % each, 1, b"1" * 16), LeaseClaim(7, 1), 0)
    promises.drop(b"3", b"1" * 16, LeaseClaim(7, 1))
    promises.open(ONE, LeaseClaim(7, 1), 1)
    assert len(promises) == NAMES_MAX
    assert (promises.epoch(b"3"), promises.epoch(b"4")) == (0, 1)


def test_an_older_word_does_not_take_back_what_a_later_one_asked_for() -> None:
    promises = Promises()
    promises.open(ONE, LeaseClaim(7, 1), 0)
    promises.prolong(ONE, LeaseClaim(7, 3), 1)
    promises.prolong(ONE, LeaseClaim(7, 2), 1)
    promises.drop(ONE.name, ONE.channel, LeaseClaim(7, 2))
    assert promises.open(OTHER, LeaseClaim(8, 1), 2) == CONTESTED
    promises.drop(ONE.name, ONE.channel, LeaseClaim(7, 3))
    assert promises.open(OTHER, LeaseClaim(8, 1), 2) == CONFIRMED
