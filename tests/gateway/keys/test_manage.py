from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from weft.broker.auth.keys import Grant, KeyRecord, Keyring, ns
from weft.errors import BadOption
from weft.gateway.keys.key_file import path_of, read_keys
from weft.gateway.keys.manage import is_usable, make_key, new_record, revoke_keys, rotate_key

HOUR = timedelta(hours=1)


def now_ns() -> int:
    return ns(datetime.now(UTC))


def accepted(data: Path, text: str, wall_ns: int) -> bool:
    return Keyring(read_keys(path_of(data))).match(text, wall_ns) is not None


def wanted(name: str = "one") -> KeyRecord:
    rights = {"publish": Grant(allow=("a.>",), deny=("a.b",))}
    return msgspec.structs.replace(new_record(name, "client", "weather"), rights=rights)


def test_a_key_that_was_made_is_accepted_and_only_its_hash_is_kept(tmp_path: Path) -> None:
    made = make_key(tmp_path, wanted())
    assert len(made.text) == 55
    assert made.text.startswith(f"wk_{made.record.id}_")
    assert accepted(tmp_path, made.text, now_ns())
    assert made.text[12:] not in path_of(tmp_path).read_text()
    assert made.record.rights == wanted().rights


def test_no_two_keys_are_alike(tmp_path: Path) -> None:
    made = [make_key(tmp_path, wanted(f"k{number}")) for number in range(20)]
    assert len({each.text for each in made} | {each.record.id for each in made}) == 40


def test_a_name_in_use_cannot_be_given_again_until_its_key_is_revoked(tmp_path: Path) -> None:
    make_key(tmp_path, wanted())
    with pytest.raises(BadOption, match="a key named 'one' is in use"):
        make_key(tmp_path, wanted())
    revoke_keys(tmp_path, "one")
    make_key(tmp_path, wanted())
    assert len(read_keys(path_of(tmp_path))) == 2


def test_a_key_that_would_be_expired_at_once_is_not_made(tmp_path: Path) -> None:
    past = msgspec.structs.replace(wanted(), expires=datetime.now(UTC) - HOUR)
    with pytest.raises(BadOption, match="would never be accepted"):
        make_key(tmp_path, past)


def test_what_cannot_be_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(BadOption, match="an admin may do everything"):
        make_key(tmp_path, msgspec.structs.replace(wanted(), role="admin"))


@pytest.mark.parametrize("by", ["id", "name"])
def test_a_revoked_key_is_not_accepted_any_more(tmp_path: Path, by: str) -> None:
    made = make_key(tmp_path, wanted())
    other = make_key(tmp_path, wanted("two"))
    (revoked,) = revoke_keys(tmp_path, getattr(made.record, by))
    assert revoked.id == made.record.id
    assert not accepted(tmp_path, made.text, now_ns())
    assert accepted(tmp_path, other.text, now_ns())
    with pytest.raises(BadOption, match="is revoked or expired already"):
        revoke_keys(tmp_path, made.record.id)


def test_what_is_not_there_cannot_be_revoked_or_rotated(tmp_path: Path) -> None:
    with pytest.raises(BadOption, match="there is no key with the id or name 'nobody'"):
        revoke_keys(tmp_path, "nobody")
    with pytest.raises(BadOption, match="there is no key with the id or name 'nobody'"):
        rotate_key(tmp_path, "nobody", HOUR)


def test_a_rotated_key_and_its_successor_are_both_accepted_for_a_while(tmp_path: Path) -> None:
    old = make_key(tmp_path, wanted())
    new, ending = rotate_key(tmp_path, "one", HOUR)
    assert (new.record.name, new.record.role, new.record.rights) == (
        "one",
        "client",
        old.record.rights,
    )
    assert (ending.id, new.record.expires) == (old.record.id, None)
    later_ns = now_ns() + ns(datetime.fromtimestamp(3601, UTC))
    assert [accepted(tmp_path, each.text, now_ns()) for each in (old, new)] == [True, True]
    assert [accepted(tmp_path, each.text, later_ns) for each in (old, new)] == [False, True]


def test_rotating_again_goes_on_from_the_newest(tmp_path: Path) -> None:
    make_key(tmp_path, wanted())
    second, _ = rotate_key(tmp_path, "one", HOUR)
    _, ending = rotate_key(tmp_path, "one", HOUR)
    assert ending.id == second.record.id


def test_rotating_does_not_make_a_key_last_longer(tmp_path: Path) -> None:
    soon = datetime.now(UTC) + timedelta(minutes=1)
    make_key(tmp_path, msgspec.structs.replace(wanted(), expires=soon))
    _, ending = rotate_key(tmp_path, "one", HOUR)
    assert ending.expires == soon


def test_without_an_overlap_the_old_key_ends_at_once(tmp_path: Path) -> None:
    old = make_key(tmp_path, wanted())
    rotate_key(tmp_path, "one", timedelta(0))
    assert not accepted(tmp_path, old.text, now_ns())
    with pytest.raises(BadOption, match="is revoked or expired already"):
        rotate_key(tmp_path, old.record.id, HOUR)


def test_revoking_a_name_revokes_all_that_have_it(tmp_path: Path) -> None:
    make_key(tmp_path, wanted())
    rotate_key(tmp_path, "one", HOUR)
    assert len(revoke_keys(tmp_path, "one")) == 2
    assert not any(is_usable(each, datetime.now(UTC)) for each in read_keys(path_of(tmp_path)))
