"""What an administrator may command, and everything that is no command of one."""

import msgspec
import pytest
from tests.mesh.mesh import identity_of

from weft.errors import BadOption
from weft.mesh.admin.admin_command import (
    LIFE_MAX_MS,
    SEEN_MAX,
    SKEW_MS,
    Command,
    CommandOrder,
    CommandRefusal,
    Judge,
    SignedCommand,
    TargetAttributes,
    check_target,
    is_for,
    sign,
)
from weft.mesh.links.signing import verify

ADMIN, OTHER = identity_of(1), identity_of(2)
NOW_MS = 1_800_000_000_000
ORDER = CommandOrder("weather", "all", "drain")


def judge(since_ms: int = 0) -> Judge:
    made = Judge("weather", verify, since_ms)
    made.admins = {ADMIN.key}
    return made


def signed(order: CommandOrder = ORDER, nonce: int = 1, issued_ms: int = NOW_MS) -> SignedCommand:
    return sign(ADMIN, order, nonce.to_bytes(16, "big"), issued_ms, 1000)


def refused(judged: Command | CommandRefusal) -> str:
    return judged.name if isinstance(judged, CommandRefusal) else ""


@pytest.mark.req("RLY-9")
def test_what_an_administrator_has_signed_is_a_command() -> None:
    command = judge().judge(signed(ORDER._replace(value="now")), NOW_MS)
    assert isinstance(command, Command)
    assert (command.verb, command.value, command.target) == ("drain", "now", "all")


@pytest.mark.req("RLY-9")
def test_what_was_given_once_is_not_obeyed_again() -> None:
    here = judge()
    assert refused(here.judge(signed(), NOW_MS)) == ""
    assert refused(here.judge(signed(), NOW_MS + 999)) == "ReplayedCommand"
    assert refused(here.judge(signed(nonce=2), NOW_MS)) == ""


@pytest.mark.req("RLY-9")
def test_what_was_given_before_a_restart_is_not_obeyed_again() -> None:
    began = judge(since_ms=NOW_MS + 1)
    assert refused(began.judge(signed(), NOW_MS + 2)) == "ExpiredCommand"
    recalled = judge()
    recalled.remember((1).to_bytes(16, "big"), NOW_MS + 1000)
    assert refused(recalled.judge(signed(), NOW_MS)) == "ReplayedCommand"


@pytest.mark.parametrize(
    ("now_ms", "found"),
    [
        (NOW_MS, ""),
        (NOW_MS + 999, ""),
        (NOW_MS + 1000, "ExpiredCommand"),
        (NOW_MS - SKEW_MS, ""),
        (NOW_MS - SKEW_MS - 1, "EarlyCommand"),
    ],
)
def test_a_command_holds_for_its_time(now_ms: int, found: str) -> None:
    assert refused(judge().judge(signed(), now_ms)) == found


@pytest.mark.req("RLY-9")
def test_who_is_no_administrator_commands_nothing() -> None:
    by_other = sign(OTHER, ORDER, bytes(16), NOW_MS, 1000)
    assert refused(judge().judge(by_other, NOW_MS)) == "NotAnAdmin"
    # It says that the administrator has signed it.
    said = msgspec.msgpack.encode(Command(ADMIN.key, *ORDER, NOW_MS, 1000, bytes(16)))
    forged = SignedCommand(said, OTHER.sign(b"weft command 1\0" + said))
    assert refused(judge().judge(forged, NOW_MS)) == "ForgedCommand"
    real = signed()
    at = real.said.index(b"drain")
    altered = SignedCommand(real.said[:at] + b"train" + real.said[at + 5 :], real.signature)
    assert refused(judge().judge(altered, NOW_MS)) == "ForgedCommand"


def test_a_command_is_for_one_service() -> None:
    assert refused(judge().judge(signed(ORDER._replace(service="news")), NOW_MS)) == "OtherService"


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"\xc1",
        b"x" * 5000,
        msgspec.msgpack.encode([ADMIN.key, "weather", "all", "drain", "", NOW_MS, 0, bytes(16)]),
        msgspec.msgpack.encode([b"", "weather", "all", "drain", "", NOW_MS, 9, bytes(16)]),
    ],
)
def test_what_cannot_be_read_is_no_command(said: bytes) -> None:
    assert refused(judge().judge(SignedCommand(said, ADMIN.sign(said)), NOW_MS)) == "BadCommand"


def test_only_so_many_are_remembered_and_not_for_ever() -> None:
    here = judge()
    for number in range(SEEN_MAX):
        here.remember(number.to_bytes(16, "little"), NOW_MS + 10)
    assert refused(here.judge(signed(), NOW_MS)) == "TooManyCommands"
    assert refused(here.judge(signed(), NOW_MS + 10)) == ""


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ("all", True),
        ("node:paris", True),
        ("node:ab12", True),
        ("node:london", False),
        ("region:north", True),
        ("region:south", False),
    ],
)
def test_a_target_names_gateways(target: str, found: bool) -> None:
    check_target(target)
    assert is_for(target, TargetAttributes("paris", "ab12", "north")) == found


@pytest.mark.parametrize("target", ["", "paris", "node:", "region:", "everyone", "a" * 300])
def test_a_target_that_names_nobody_is_refused(target: str) -> None:
    with pytest.raises(BadOption, match="target"):
        check_target(target)


def test_a_command_that_cannot_be_is_not_signed() -> None:
    with pytest.raises(BadOption, match="invalid command"):
        sign(ADMIN, ORDER, bytes(16), NOW_MS, LIFE_MAX_MS + 1)
    with pytest.raises(BadOption, match="invalid command"):
        sign(ADMIN, ORDER._replace(value="x" * 256), bytes(16), NOW_MS, 1000)
