"""Where a connection comes from, by what its socket says and by nothing else."""

import secrets
import socket

import pytest

from weft.gateway.front.remote_address import host_of, name_after


@pytest.mark.req("HUB-21")
@pytest.mark.parametrize(
    ("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]
)
def test_a_tcp_connection_comes_from_the_host_at_its_other_end(
    family: socket.AddressFamily, host: str
) -> None:
    with (
        socket.create_server((host, 0), family=family) as listening,
        socket.create_connection(listening.getsockname()[:2]),
        listening.accept()[0] as accepted,
    ):
        assert host_of(accepted.fileno()) == host


@pytest.mark.req("HUB-21")
@pytest.mark.parametrize(
    ("peer", "host"),
    [("203.0.113.7:4711", "203.0.113.7"), ("[2001:db8::7]:4711", "2001:db8::7")],
)
def test_a_pair_that_was_named_comes_from_whoever_it_speaks_for(peer: str, host: str) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        name_after(ours, peer)
        assert host_of(theirs.fileno()) == host


def test_the_same_peer_may_have_two_connections() -> None:
    first, second = socket.socketpair(), socket.socketpair()
    with first[0], first[1], second[0], second[1]:
        name_after(first[0], "203.0.113.7:4711")
        name_after(second[0], "203.0.113.7:4711")
        assert host_of(first[1].fileno()) == host_of(second[1].fileno())


@pytest.mark.parametrize("name", ["", "\0somebody/{}/203.0.113.7:4711"])
def test_any_other_socket_of_this_machine_comes_from_nowhere(name: str) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        if name:
            ours.bind(name.format(secrets.token_hex(8)))
        assert host_of(theirs.fileno()) == ""


def test_a_socket_that_is_gone_comes_from_nowhere() -> None:
    ours, theirs = socket.socketpair()
    theirs.close()
    with ours:
        assert host_of(theirs.fileno()) == ""
        assert host_of(ours.fileno()) == ""
