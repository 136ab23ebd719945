import time
from datetime import UTC, datetime

import pytest
from tests.broker.locksmith import key_of, record

from weft.broker.auth.keys import Keyring
from weft.errors import BadKey, NotAllowed
from weft.gateway.http.page_auth import check_page


class Known:
    """The keys of a gateway."""

    def __init__(self) -> None:
        self.keyring: Keyring | None = Keyring(
            [
                record("one"),
                record("boss", "admin"),
                record("guest", "client", replay=[">"]),
                record("gone", revoked=datetime(2026, 2, 1, tzinfo=UTC)),
                record("some", subscribe=[">"], replay=["a.>"]),
                record("most", replay=["-secret"]),
                record("listener", subscribe=["a.>"], replay=[">"]),
                record("curbed", subscribe=["-secret.>"]),
                record("mute", replay=[">"]),
                record("aside", subscribe=["-_WEFT.>"]),
                record("every", subscribe=[">"], replay=[">"]),
                record("local", subscribe=[">", "_LOCAL.>"], replay=[">", "_LOCAL.>"]),
            ]
        )


def check(path: str, name: str = "") -> None:
    assert time.time_ns() > 0
    check_page(Known(), path, f"Bearer {key_of(name)}" if name else "")


@pytest.mark.parametrize("path", ["/", "/healthz", "/readyz", "/nothing", "/statusx"])
def test_probes_and_what_tells_nothing_need_no_key(path: str) -> None:
    check(path)


@pytest.mark.parametrize("path", ["/status", "/metrics", "/nodes", "/journal/weather"])
def test_what_tells_of_the_gateway_needs_a_key_that_is_accepted(path: str) -> None:
    with pytest.raises(BadKey, match="a key is needed"):
        check(path)
    for wrong in ("gone", "nobody"):
        with pytest.raises(BadKey, match="the key is not accepted"):
            check(path, wrong)
    with pytest.raises(NotAllowed, match="a service or an admin"):
        check(path, "guest")
    check(path, "one")
    check(path, "boss")


@pytest.mark.parametrize(
    "header", [key_of("one"), f"Basic {key_of('one')}", "Bearer", "Bearer ", "Bearer \ud800"]
)
def test_only_a_bearer_of_a_key_is_let_in(header: str) -> None:
    with pytest.raises(BadKey, match="the key is not accepted"):
        check_page(Known(), "/status", header)
    check_page(Known(), "/status", f"bearer  {key_of('one')} ")


def test_a_journal_is_read_with_a_key_of_its_service() -> None:
    for path in ("/journal/orders", "/journal/orders/blocks/x", "/journal/", "/journal/%77eather2"):
        with pytest.raises(NotAllowed, match="may not read the journal"):
            check(path, "one")
        check(path, "boss")
    check("/journal/%77eather/sealed/a/b", "one")


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("some", "replay"),
        ("most", "replay"),
        ("listener", "subscribe"),
        ("curbed", "subscribe"),
        ("mute", "subscribe"),
    ],
)
def test_a_journal_is_lent_whole_so_a_key_must_have_the_whole_right(name: str, right: str) -> None:
    with pytest.raises(NotAllowed, match=f"served whole.*may not {right} all"):
        check("/journal/weather", name)


def test_a_key_that_may_read_every_subject_reads_a_lent_journal() -> None:
    for name in ("every", "aside", "one", "boss"):
        check("/journal/weather", name)


def test_a_journal_of_reserved_subjects_needs_a_right_to_them() -> None:
    kept = (b">", b"_LOCAL.>")
    for name in ("local", "one", "boss"):
        check_page(Known(), "/journal/weather", f"Bearer {key_of(name)}", kept=kept)
    with pytest.raises(NotAllowed, match="served whole"):
        check_page(Known(), "/journal/weather", f"Bearer {key_of('every')}", kept=kept)


@pytest.mark.req("RLY-16")
def test_whoever_may_come_in_may_look_for_where() -> None:
    with pytest.raises(BadKey, match="a key is needed"):
        check("/closest")
    for name in ("guest", "one", "boss"):
        header = f"Bearer {key_of(name)}"
        check_page(Known(), "/closest", header, "service=weather&limit=2")
    with pytest.raises(NotAllowed, match="not for that service"):
        check_page(Known(), "/closest", f"Bearer {key_of('guest')}", "service=orders")
    check_page(Known(), "/closest", f"Bearer {key_of('boss')}", "service=orders")


def test_without_keys_every_page_is_for_everyone() -> None:
    known = Known()
    known.keyring = None
    check_page(known, "/journal/weather", "")
