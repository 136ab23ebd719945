"""Tickets for lanes: each is for two connections and one subject, and both ends prove its key."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.wire.lane_tickets import KEY_BYTES, Proofs, Ticket, is_proof, lane_number, sign

SECRET = bytes(range(32))
TICKET = Ticket("default", 7, 9, b"ticks.eur", 10_000_000_000, 1)
PROOFS = Proofs(sign(SECRET, TICKET.encode()), TICKET.encode(), b"s" * 32, b"r" * 32)

tickets = st.builds(
    Ticket,
    st.from_regex(r"[a-z0-9-]{1,63}", fullmatch=True),
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**64 - 1),
    st.binary(min_size=1, max_size=255),
    st.integers(0, 2**63 - 1),
    st.integers(0, 2**64 - 1),
)


@pytest.mark.req("HUB-21")
@given(tickets, tickets)
def test_two_tickets_have_the_same_key_only_if_they_say_the_same(
    one: Ticket, other: Ticket
) -> None:
    keys = [sign(SECRET, ticket.encode()) for ticket in (one, other)]
    assert (keys[0] == keys[1]) == (one == other)
    assert len(keys[0]) == KEY_BYTES


@pytest.mark.req("HUB-21")
def test_a_key_is_made_by_the_gateways_secret() -> None:
    assert sign(SECRET, TICKET.encode()) != sign(bytes(32), TICKET.encode())


@pytest.mark.req("HUB-21")
def test_a_lane_is_called_by_the_first_four_bytes_of_its_tickets_sha_256() -> None:
    # FIPS 180-2: the digest of "abc" begins ba 78 16 bf.
    assert lane_number(b"abc") == 0xBF1678BA


@pytest.mark.req("HUB-21")
def test_each_end_proves_something_of_its_own() -> None:
    codes = {PROOFS.by_sender(), PROOFS.by_receiver(), *PROOFS.keys(), PROOFS.key}
    assert len(codes) == 5


@pytest.mark.req("HUB-21")
@pytest.mark.parametrize(
    "changed",
    [
        {"key": bytes(32)},
        {"ticket": b"another"},
        {"sender_nonce": bytes(32)},
        {"receiver_nonce": bytes(32)},
    ],
)
def test_a_proof_is_of_one_key_one_ticket_and_both_numbers(changed: dict[str, bytes]) -> None:
    other = PROOFS._replace(**changed)
    assert is_proof(PROOFS.by_sender(), PROOFS.by_sender())
    assert not is_proof(other.by_sender(), PROOFS.by_sender())
    assert not is_proof(other.by_receiver(), PROOFS.by_receiver())
    assert set(other.keys()).isdisjoint(PROOFS.keys())


def test_a_key_is_shown_to_nobody() -> None:
    assert repr(PROOFS) == "Proofs(…)"
