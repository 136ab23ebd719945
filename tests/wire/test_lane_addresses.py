"""Which addresses are told to whom."""

import pytest

from weft.wire.lane_addresses import (
    UNIX_RANDOM_BYTES,
    is_encrypted,
    is_unix_name,
    may_be_told,
    reach_of,
    unix_name,
    written,
)

LOOPBACK, LINK, PRIVATE, PUBLIC = "127.0.0.1", "169.254.1.1", "10.0.0.1", "8.8.8.8"


@pytest.mark.parametrize(
    ("host", "reach"),
    [
        (LOOPBACK, "loopback"),
        ("::1", "loopback"),
        ("::ffff:127.0.0.9", "loopback"),
        (LINK, "link-local"),
        ("fe80::1%eth0", "link-local"),
        (PRIVATE, "private"),
        ("fd00::1", "private"),
        ("::ffff:192.168.1.1", "private"),
        (PUBLIC, "public"),
        ("2a00::1", "public"),
        ("", ""),
        ("paris", ""),
    ],
)
def test_a_host_is_reached_from_somewhere(host: str, reach: str) -> None:
    assert reach_of(host) == reach


@pytest.mark.req("HUB-21")
@pytest.mark.parametrize(
    ("sender", "receiver", "is_told"),
    [
        (LOOPBACK, LOOPBACK, True),
        (LINK, LINK, True),
        (PRIVATE, "192.168.0.1", True),
        (PUBLIC, PUBLIC, True),
        (PRIVATE, PUBLIC, True),
        ("", PUBLIC, True),
        (PUBLIC, PRIVATE, False),
        (PRIVATE, LOOPBACK, False),
        (PRIVATE, LINK, False),
        (LOOPBACK, PRIVATE, False),
        ("", "", False),
        (PUBLIC, "", False),
    ],
)
def test_an_address_is_told_where_it_means_the_same(
    sender: str, receiver: str, is_told: bool
) -> None:
    assert may_be_told(sender, receiver) is is_told


def test_only_what_stays_in_one_machine_is_not_encrypted() -> None:
    assert not is_encrypted(LOOPBACK, "::1")
    assert is_encrypted(PRIVATE, PRIVATE)
    assert is_encrypted("", "")


@pytest.mark.parametrize(
    ("host", "text"),
    [
        (PUBLIC, "8.8.8.8:7"),
        ("::ffff:8.8.8.8", "8.8.8.8:7"),
        ("2a00::1", "[2a00::1]:7"),
        ("fe80::1%eth0", "[fe80::1]:7"),
        ("", ""),
    ],
)
def test_an_address_is_written_as_people_do(host: str, text: str) -> None:
    assert written(host, 7) == text


def test_a_name_of_a_listener_is_recognized() -> None:
    assert is_unix_name(unix_name("0f" * UNIX_RANDOM_BYTES))


@pytest.mark.parametrize(
    "name",
    [
        unix_name("0f" * (UNIX_RANDOM_BYTES - 1)),
        unix_name("0F" * UNIX_RANDOM_BYTES),
        unix_name("0f" * UNIX_RANDOM_BYTES) + "\n",
        "x" + unix_name("0f" * UNIX_RANDOM_BYTES),
        "",
    ],
)
def test_another_socket_is_not_taken_for_a_listener(name: str) -> None:
    assert not is_unix_name(name)
