import asyncio
import os
import signal
import socket
import subprocess
import sys

import pytest

from weft.errors import Overloaded
from weft.gateway.front.fd_passing import BATCH_MAX, WAITING_MAX, FdSender, receive

SHORT_OF_DESCRIPTORS = """
import resource, socket, sys
from weft.gateway.front.fd_passing import receive
sock = socket.socket(fileno=int(sys.argv[1]))
# Standard streams and three more.
resource.setrlimit(resource.RLIMIT_NOFILE, (6, 6))
batch, lost = receive(sock)
print(len(batch), lost)
"""

# Whoever may have everything is not held to the limit, so it becomes nobody in particular.
TOO_MANY_ON_THEIR_WAY = """
import asyncio, os, resource, socket
from weft.gateway.front.fd_passing import FdSender, receive

async def main():
    if os.geteuid() == 0:
        os.setuid(65_534)
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
    outgoing, sent, received = FdSender(), 0, 0
    ours, theirs = socket.socketpair()
    with ours, theirs:
        while not len(outgoing):
            for _ in range(30):
                outgoing.put(theirs.dup().detach())
                sent += 1
            await asyncio.sleep(0)
            await asyncio.sleep(0)
    while received < sent:
        try:
            batch, lost = receive(outgoing.far)
        except BlockingIOError:
            await asyncio.sleep(0.001)
            continue
        received += len(batch) + lost
        for fd, _ in batch:
            os.close(fd)
    print(sent > 100, len(outgoing))
    outgoing.close()

asyncio.run(main())
"""


async def received(sock: socket.socket, count: int) -> list[socket.socket]:
    """So many sockets from the other end, as they come."""
    loop = asyncio.get_running_loop()
    found: list[socket.socket] = []
    while len(found) < count:
        is_there = loop.create_future()
        loop.add_reader(sock, is_there.set_result, None)
        await is_there
        loop.remove_reader(sock)
        batch, lost = receive(sock)
        assert lost == 0
        found += [socket.socket(fileno=fd) for fd, _ in batch]
    return found


def many(count: int) -> list[socket.socket]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        return [theirs.dup() for _ in range(count)]


def close_all(sockets: list[socket.socket]) -> None:
    for sock in sockets:
        sock.close()


@pytest.mark.req("MM-15")
async def test_a_socket_arrives_with_every_byte_unread() -> None:
    outgoing = FdSender()
    ours, theirs = socket.socketpair()
    ours.sendall(b"first words")
    theirs.setblocking(False)
    outgoing.put(theirs.detach())
    (arrived,) = await received(outgoing.far, 1)
    assert arrived.recv(100) == b"first words"
    ours.sendall(b"and more")
    assert arrived.recv(100) == b"and more"
    assert not os.get_blocking(arrived.fileno())
    arrived.close()
    # Ours is closed: the other process alone decides when the connection ends.
    assert ours.recv(100) == b""
    ours.close()
    outgoing.close()


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
async def test_a_socket_arrives_as_what_it_was(family: socket.AddressFamily) -> None:
    outgoing = FdSender()
    sent = socket.socket(family, socket.SOCK_STREAM)
    outgoing.put(sent.detach())
    (arrived,) = await received(outgoing.far, 1)
    assert (arrived.family, arrived.type) == (family, socket.SOCK_STREAM)
    assert not os.get_inheritable(arrived.fileno())
    arrived.close()
    outgoing.close()


async def test_what_comes_in_one_turn_goes_in_few_messages() -> None:
    outgoing = FdSender()
    for sock in many(BATCH_MAX + 1):
        outgoing.put(sock.detach())
    assert len(outgoing) == BATCH_MAX + 1
    first = await received(outgoing.far, 1)
    assert len(first) == BATCH_MAX
    assert outgoing.sent == BATCH_MAX + 1
    assert len(outgoing) == 0
    close_all(first + await received(outgoing.far, 1))
    outgoing.close()


async def filled() -> FdSender:
    """One whose worker receives nothing, with no room left anywhere."""
    outgoing = FdSender()
    turn = asyncio.get_running_loop().create_future
    while len(outgoing) < WAITING_MAX:
        (sock,) = many(1)
        outgoing.put(sock.detach())
        if not len(outgoing) > 1:
            # A turn each while the kernel takes them: the smallest messages fill it soonest.
            asyncio.get_running_loop().call_soon((done := turn()).set_result, None)
            await done
    return outgoing


async def test_when_a_worker_does_not_keep_up_one_more_is_refused() -> None:
    outgoing = await filled()
    (sock,) = many(1)
    with pytest.raises(Overloaded, match="1024 connections wait"):
        outgoing.put(sock.fileno())
    sock.close()
    outgoing.close()


async def test_what_waited_goes_when_there_is_room() -> None:
    outgoing = await filled()
    count = outgoing.sent + len(outgoing)
    close_all(await received(outgoing.far, count))
    assert len(outgoing) == 0
    assert outgoing.sent == count
    (sock,) = many(1)
    outgoing.put(sock.detach())
    close_all(await received(outgoing.far, 1))
    outgoing.close()


async def test_what_a_dead_process_did_not_receive_is_taken_back_in_order() -> None:
    outgoing = FdSender()
    pairs = [socket.socketpair() for _ in range(3)]
    far = outgoing.far.fileno()
    holder = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[far]
    )
    for number, (ours, theirs) in enumerate(pairs):
        ours.sendall(bytes([number]))
        outgoing.put(theirs.detach())
    while outgoing.sent < 3:
        await asyncio.sleep(0)
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    outgoing.take_back()
    assert (outgoing.sent, len(outgoing)) == (0, 3)
    arrived = await received(outgoing.far, 3)
    assert [sock.recv(10) for sock in arrived] == [b"\x00", b"\x01", b"\x02"]
    close_all(arrived + [ours for ours, _ in pairs])
    outgoing.close()


async def test_everything_that_waits_can_be_taken_out() -> None:
    outgoing = await filled()
    waiting = outgoing.take_all()
    assert len(waiting) == WAITING_MAX
    assert len(outgoing) == 0
    close_all([socket.socket(fileno=fd) for fd, _ in waiting])
    outgoing.close()


async def test_closing_ends_what_waits() -> None:
    outgoing = FdSender()
    ours, theirs = socket.socketpair()
    outgoing.put(theirs.detach())
    outgoing.close()
    assert ours.recv(1) == b""
    ours.close()


def test_receiving_says_when_the_other_end_is_gone() -> None:
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    near.close()
    with far, pytest.raises(EOFError):
        receive(far)


async def test_sockets_lost_for_want_of_descriptors_are_counted() -> None:
    outgoing = FdSender()
    for sock in many(10):
        outgoing.put(sock.detach())
    while outgoing.sent < 10:
        await asyncio.sleep(0)
    far = outgoing.far.fileno()
    done = subprocess.run(  # noqa: S603  # ours
        [sys.executable, "-c", SHORT_OF_DESCRIPTORS, str(far)],
        check=True,
        timeout=30,
        capture_output=True,
        text=True,
        pass_fds=[far],
    )
    kept, lost = map(int, done.stdout.split())
    assert 0 < kept < 10
    assert kept + lost == 10
    outgoing.close()


def test_more_than_may_be_on_their_way_go_when_some_have_arrived() -> None:
    found = subprocess.run(  # noqa: S603  # ours
        [sys.executable, "-c", TOO_MANY_ON_THEIR_WAY],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert (found.stdout, found.stderr) == ("True 0\n", "")
