"""How long it took after each fault until messages went again where it had been in the way."""

from typing import NamedTuple

from tools.chaos.book import Book, Pair
from tools.chaos.plan import OF_PAIRS, Fault


class Happened(NamedTuple):
    """A fault that was: what, and from when to when."""

    fault: Fault
    began_ns: int
    ended_ns: int


class Times(NamedTuple):
    """Of how many pairs, and how long it took, in seconds; to `never` it did not come."""

    pairs: int
    p50_s: float
    p99_s: float
    max_s: float
    never: int


def recovery(book: Book, happened: list[Happened], gateways: int) -> Times:
    """From the end of each fault to the first probe that was published after it and arrived.

    Of each pair of gateways that a fault was about, one way and the other; unless another one was
    in the way meanwhile: then the end of that counts.
    """
    times: list[float] = []
    never = 0
    for each in happened:
        for pair in affected(each.fault, gateways):
            heard_ns = book.first_after(pair, each.ended_ns)
            others = [other for other in happened if pair in affected(other.fault, gateways)]
            if any(_is_meanwhile(other, each, heard_ns) for other in others):
                continue
            if heard_ns < 0:
                never += 1
            else:
                times.append((heard_ns - each.ended_ns) / 1e9)
    return Times(
        len(times), _percentile(times, 50), _percentile(times, 99), max(times, default=0.0), never
    )


def affected(fault: Fault, gateways: int) -> list[Pair]:
    """The pairs between which a fault was in the way."""
    if fault.kind in OF_PAIRS:
        return [(fault.gateway, fault.other), (fault.other, fault.gateway)]
    others = [each for each in range(gateways) if each != fault.gateway]
    return [pair for each in others for pair in ((fault.gateway, each), (each, fault.gateway))]


def _is_meanwhile(other: Happened, each: Happened, heard_ns: int) -> bool:
    """Say if another fault was there when one was over, or came before anything was heard."""
    is_later = other.ended_ns > each.ended_ns
    return is_later and (heard_ns < 0 or other.began_ns < heard_ns)


def _percentile(times: list[float], percent: int) -> float:
    if not times:
        return 0.0
    ordered = sorted(times)
    # The least that so many are no longer than.
    return ordered[-(-len(ordered) * percent // 100) - 1]
