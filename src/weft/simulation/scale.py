"""What becomes of a mesh as it grows: how long ways get, what it costs to know each other.

Everyone wants everything, which is the most that a mesh can have to do.
"""

import gc
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

import msgspec

from weft.mesh.settings import Rules
from weft.simulation.clients import Client, Subscriber
from weft.simulation.clock import MS, SECOND
from weft.simulation.gateway import Gateway
from weft.simulation.world import World

SIZES = [10, 100, 1000]
MAX_LINKS = 8

_BEGIN_NS = SECOND
_STEP_NS = 250 * MS
# What comes within this is dealt with together, as it is by a process that has much to do; in a
# large mesh there is more to do.
_TURN_NS = 2 * MS
_LARGE = 500
_LARGE_TURN_NS = 10 * MS
_QUIET_NS = 5 * SECOND
_PATIENCE_NS = 120 * SECOND
_MESSAGES = 20
_PAGE_BYTES = 4096

# How much virtual time has passed, and what is going on.
Tell = Callable[[float, str], None]


class Size(msgspec.Struct):
    """A mesh of one size; times are virtual, but for `took_s`. -1: that did not come about."""

    nodes: int
    mean_links: float = 0.0
    diameter: int = 0
    mean_path: float = 0.0
    # By each link that a message took, and for each delivery.
    copies_per_link: float = 0.0
    sends_per_delivery: float = 0.0
    # Of one gateway, while nothing happens.
    control_bytes_per_s: float = 0.0
    # Until all know all: after the last has begun, and after one was killed.
    start_s: float = 0.0
    start_bytes: float = 0.0
    kill_s: float = 0.0
    memory_bytes: float = 0.0
    took_s: float = 0.0


def measure(nodes: int, seed: int, tell: Tell) -> Size:
    """Let a mesh of so many gateways come together, and look at it."""
    # Nearly all there is lives to the end: to look for what does not is half of the work.
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
    size.start_s = _wait(world, tell, f"{nodes:,} gateways come together")
    size.start_bytes = world.other_bytes / nodes
    _rest(world, size, tell)
    size.memory_bytes = max(0, _memory_bytes() - before_bytes) / nodes
    _look_at_links(world, size)
    _publish(world, size, tell)
    chance.choice(world.gateways[3:]).kill()
    size.kill_s = _wait(world, tell, "one was killed")
    size.took_s = time.monotonic() - began_s
    return size


def _begin(world: World, gateway: Gateway) -> None:
    gateway.begin()
    Subscriber(world, "s", gateway, "all.>")


def _wait(world: World, tell: Tell, text: str) -> float:
    """Let time pass until all gateways know the same; for how long, or -1."""
    clock = world.clock
    began_ns = clock.now_ns
    while clock.now_ns - began_ns < _PATIENCE_NS:
        clock.run(clock.now_ns + _STEP_NS)
        tell(clock.now_ns / SECOND, f"{text}: {clock.now_ns / SECOND:.1f} s")
        if world.is_agreed:
            return (clock.now_ns - began_ns) / SECOND
    return -1.0


def _rest(world: World, size: Size, tell: Tell) -> None:
    """See what it costs that nothing happens."""
    # Links that are too many are still being given up.
    world.clock.run(world.clock.now_ns + _QUIET_NS)
    before = world.other_bytes
    world.clock.run(world.clock.now_ns + _QUIET_NS)
    seconds = _QUIET_NS / SECOND
    size.control_bytes_per_s = (world.other_bytes - before) / size.nodes / seconds
    tell(world.clock.now_ns / SECOND, "nothing happens")


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
    """How many links away everyone is."""
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
    """Publish to everyone, and count how often that goes by each link."""
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
    tell(world.clock.now_ns / SECOND, "messages to everyone")


def _memory_bytes() -> int:
    """How much memory this process has."""
    gc.collect()
    resident = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(resident) * _PAGE_BYTES
