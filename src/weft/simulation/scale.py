"""Scaling of a mesh with its size: path lengths, and the cost of membership and interest.

Every gateway subscribes to all messages, which is the greatest load for a mesh.
"""

import gc
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

import msgspec

from weft.mesh.settings import Rules
from weft.simulation.clients import Client, SimSubscriber
from weft.simulation.clock import MS, SECOND
from weft.simulation.gateway import SimGateway
from weft.simulation.world import World

SIZES = [10, 100, 1000]
MAX_LINKS = 8

_BEGIN_NS = SECOND
_STEP_NS = 250 * MS
# Input within this time is processed in one turn, as in a busy process; longer in a large mesh.
_TURN_NS = 2 * MS
_LARGE = 500
_LARGE_TURN_NS = 10 * MS
_QUIET_NS = 5 * SECOND
_PATIENCE_NS = 120 * SECOND
_MESSAGES = 20
_PAGE_BYTES = 4096

# Reports the virtual time in seconds and the current activity.
Tell = Callable[[float, str], None]


class Size(msgspec.Struct):
    """Results for one size; times are virtual except `took_s`. -1: not reached."""

    nodes: int
    mean_links: float = 0.0
    diameter: int = 0
    mean_path: float = 0.0
    # Per link that a message took, and per delivery.
    copies_per_link: float = 0.0
    sends_per_delivery: float = 0.0
    # Per gateway, without activity.
    control_bytes_per_s: float = 0.0
    # Until all gateways know all: after the last start, and after a kill.
    start_s: float = 0.0
    start_bytes: float = 0.0
    kill_s: float = 0.0
    memory_bytes: float = 0.0
    took_s: float = 0.0


def measure(nodes: int, seed: int, tell: Tell) -> Size:
    """Simulate a mesh of `nodes` gateways and measure it."""
    # Nearly all objects live to the end: garbage collection would take half of the time.
    gc.disable()
    try:
        return _measure(nodes, seed, tell)
    finally:
        gc.enable()


def _measure(nodes: int, seed: int, tell: Tell) -> Size:
    began_s = time.monotonic()
    before_bytes = _memory_bytes()
    world = World(f"{seed}/scale")
    chance = Random(f"{seed}/scale")
    join = tuple(f"10.0.0.{place}:7411" for place in (1, 2, 3))
    for _ in range(nodes):
        gateway = world.add(Rules(join=join, max_links=MAX_LINKS))
        gateway.turn_ns = _LARGE_TURN_NS if nodes > _LARGE else _TURN_NS
        world.clock.after(chance.randrange(_BEGIN_NS), partial(_begin, world, gateway))
    world.clock.run(_BEGIN_NS)
    size = Size(nodes)
    size.start_s = _wait(world, tell, f"{nodes:,} gateways start")
    size.start_bytes = world.other_bytes / nodes
    _rest(world, size, tell)
    size.memory_bytes = max(0, _memory_bytes() - before_bytes) / nodes
    _look_at_links(world, size)
    _publish(world, size, tell)
    chance.choice(world.gateways[3:]).kill()
    size.kill_s = _wait(world, tell, "one is killed")
    size.took_s = time.monotonic() - began_s
    return size


def _begin(world: World, gateway: SimGateway) -> None:
    gateway.begin()
    SimSubscriber(world, "s", gateway, "all.>")


def _wait(world: World, tell: Tell, text: str) -> float:
    """Run until all gateways know the same; return the virtual seconds, or -1."""
    clock = world.clock
    began_ns = clock.now_ns
    while clock.now_ns - began_ns < _PATIENCE_NS:
        clock.run(clock.now_ns + _STEP_NS)
        tell(clock.now_ns / SECOND, f"{text}: {clock.now_ns / SECOND:.1f} s")
        if world.is_agreed:
            return (clock.now_ns - began_ns) / SECOND
    return -1.0


def _rest(world: World, size: Size, tell: Tell) -> None:
    """Measure control traffic without activity."""
    # Excess links are still being closed.
    world.clock.run(world.clock.now_ns + _QUIET_NS)
    before = world.other_bytes
    world.clock.run(world.clock.now_ns + _QUIET_NS)
    seconds = _QUIET_NS / SECOND
    size.control_bytes_per_s = (world.other_bytes - before) / size.nodes / seconds
    tell(world.clock.now_ns / SECOND, "no activity")


def _look_at_links(world: World, size: Size) -> None:
    links = {
        gateway.number: sorted({link.number for link in gateway.fabric.links.values()})
        for gateway in world.up
    }
    size.mean_links = sum(map(len, links.values())) / len(links)
    total = 0
    for number in links:
        distances = _distances(number, links)
        size.diameter = max(size.diameter, *distances)
        total += sum(distances)
    size.mean_path = total / len(links) / (len(links) - 1)


def _distances(start: int, links: dict[int, list[int]]) -> list[int]:
    """Return the number of links to each gateway."""
    found = {start: 0}
    border = [start]
    while border:
        further = []
        for number in border:
            for other in links[number]:
                if other not in found:
                    found[other] = found[number] + 1
                    further.append(other)
        border = further
    return list(found.values())


def _publish(world: World, size: Size, tell: Tell) -> None:
    """Publish to all gateways, and count the copies on each link."""
    publisher = Client(world, "p", world.gateways[-1])
    before = world.message_frames
    world.history.passages.clear()
    publisher.publish("all.together", range(1, _MESSAGES + 1))
    world.clock.run(world.clock.now_ns + 2 * SECOND)
    sends = world.message_frames - before
    used = {each.path[-2:] for each in world.history.passages}
    size.copies_per_link = sends / max(1, len(used)) / _MESSAGES
    size.sends_per_delivery = sends / (size.nodes - 1) / _MESSAGES
    world.history.passages.clear()
    tell(world.clock.now_ns / SECOND, "messages to all")


def _memory_bytes() -> int:
    """Return the resident memory of this process."""
    gc.collect()
    resident = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(resident) * _PAGE_BYTES
