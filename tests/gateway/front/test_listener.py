import asyncio
import os
import socket
import subprocess
import sys

import pytest

from weft.errors import UsageError
from weft.gateway.config.settings import SocketAddress
from weft.gateway.front.listener import Accepted, PortListener

LOOPBACK = SocketAddress("127.0.0.1", 0)

# Lets descriptors run out while three peers connect, then gives some back: all three are served.
RUN_OUT = """
import asyncio, os, resource, socket
from weft.gateway.front.listener import PortListener
from weft.gateway.config.settings import SocketAddress

async def main():
    came = asyncio.Queue()
    address = SocketAddress("127.0.0.1", 0)
    listener = PortListener(address, lambda batch: [came.put_nowait(each) for each in batch])
    peers = [socket.socket() for _ in range(3)]
    spare = [os.open("/dev/null", os.O_RDONLY) for _ in range(3)]
    limit = max(spare) + 1
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    for peer in peers:
        peer.connect(listener.address)
    while not listener.pauses:
        await asyncio.sleep(0.01)
    assert came.empty()
    for each in spare:
        os.close(each)
    for _ in peers:
        fd, _ = await came.get()
        os.close(fd)
    print("paused", listener.pauses, "accepted", listener.accepted)
    listener.close()

asyncio.run(asyncio.wait_for(main(), 30))
"""


def close_all(peers: list[socket.socket], taken: list[int]) -> None:
    for peer in peers:
        peer.close()
    for fd in taken:
        os.close(fd)


async def test_whoever_connects_is_taken_with_its_address() -> None:
    came: asyncio.Queue[list[Accepted]] = asyncio.Queue()
    listener = PortListener(LOOPBACK, came.put_nowait)
    assert listener.address.port != 0
    with socket.create_connection(listener.address) as peer:
        ((fd, name),) = await came.get()
        assert name == "{}:{}".format(*peer.getsockname())
        assert not os.get_blocking(fd)
        assert not os.get_inheritable(fd)
        with socket.socket(fileno=fd) as sock:
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert listener.accepted == 1
    listener.close()


async def test_ipv6_is_listened_on_too() -> None:
    came: asyncio.Queue[list[Accepted]] = asyncio.Queue()
    listener = PortListener(SocketAddress("::1", 0), came.put_nowait)
    with socket.create_connection(listener.address):
        ((fd, name),) = await came.get()
        assert name.startswith("[::1]:")
        os.close(fd)
    listener.close()


async def test_many_are_taken_in_one_turn() -> None:
    came: asyncio.Queue[list[Accepted]] = asyncio.Queue()
    listener = PortListener(LOOPBACK, came.put_nowait)
    peers = [socket.create_connection(listener.address) for _ in range(100)]
    batches = [await came.get(), await came.get()]
    assert [len(batch) for batch in batches] == [64, 36]
    close_all(peers, [fd for batch in batches for fd, _ in batch])
    listener.close()


async def test_who_comes_after_several_is_taken_too() -> None:
    came: asyncio.Queue[list[Accepted]] = asyncio.Queue()
    listener = PortListener(LOOPBACK, came.put_nowait)
    peers = [socket.create_connection(listener.address) for _ in range(3)]
    batches = [await came.get()]
    peers.append(socket.create_connection(listener.address))
    batches.append(await came.get())
    assert [len(batch) for batch in batches] == [3, 1]
    close_all(peers, [fd for batch in batches for fd, _ in batch])
    listener.close()


async def test_closing_takes_who_comes_right_after_several() -> None:
    came: asyncio.Queue[list[Accepted]] = asyncio.Queue()
    listener = PortListener(LOOPBACK, came.put_nowait)
    peers = [socket.create_connection(listener.address) for _ in range(3)]
    batches = [await came.get()]
    peers.append(socket.create_connection(listener.address))
    listener.close()
    batches.append(came.get_nowait())
    assert listener.accepted == 4
    close_all(peers, [fd for batch in batches for fd, _ in batch])


async def test_closing_takes_who_has_connected_already() -> None:
    came: list[Accepted] = []
    listener = PortListener(LOOPBACK, came.extend)
    peers = [socket.create_connection(listener.address) for _ in range(100)]
    listener.close()
    listener.close()
    assert len(came) == 100
    assert not listener.is_open
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(listener.address)
    close_all(peers, [fd for fd, _ in came])


async def test_an_address_in_use_is_named() -> None:
    came: list[Accepted] = []
    first = PortListener(LOOPBACK, came.extend)
    with pytest.raises(UsageError, match=f"cannot listen on {first.address}: Address already in"):
        PortListener(first.address, came.extend)
    first.close()


def test_without_descriptors_accepting_pauses_and_goes_on() -> None:
    done = subprocess.run(  # noqa: S603  # ours
        [sys.executable, "-X", "dev", "-c", RUN_OUT],
        check=True,
        timeout=60,
        capture_output=True,
        text=True,
    )
    words = done.stdout.split()
    assert words[0] == "paused"
    assert words[2:] == ["accepted", "3"]
    assert "accepting paused: Too many open files" in done.stderr
