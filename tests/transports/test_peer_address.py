import socket

import pytest

from weft.transports.peer_address import peer_address


@pytest.mark.parametrize(
    ("family", "host", "shown"),
    [(socket.AF_INET, "127.0.0.1", "127.0.0.1"), (socket.AF_INET6, "::1", "[::1]")],
)
def test_it_is_where_the_other_end_is(family: int, host: str, shown: str) -> None:
    with (
        socket.create_server((host, 0), family=family) as listening,
        socket.create_connection(listening.getsockname()[:2]) as sock,
    ):
        port = listening.getsockname()[1]
        assert peer_address(sock.fileno()) == f"{shown}:{port}"
        accepted, _ = listening.accept()
        with accepted:
            here = sock.getsockname()[1]
            assert peer_address(accepted.fileno()) == f"{shown}:{here}"


def test_a_pipe_has_none() -> None:
    first, second = socket.socketpair()
    with first, second:
        assert peer_address(first.fileno()) == ""


def test_one_that_is_not_connected_has_none() -> None:
    with socket.socket() as sock:
        assert peer_address(sock.fileno()) == ""
