"""Log of a service's links: each change once, the same warning at most once a minute."""

import logging
import time
from collections.abc import Callable

from weft.mesh.links.link import Link
from weft.mesh.links.link_events import LinkEnded, Warned
from weft.mesh.membership.members import Member, Members
from weft.mesh.node import MeshNode

_log = logging.getLogger(__name__)

# The same warning is logged again after this time, with the number of repetitions.
WARN_EVERY_S = 60.0
# Distinct warnings; further ones share one line a minute for each kind.
KINDS_MAX = 64
_OTHERS = "others"


class MeshLog:
    """Log of one service's links; `clock` returns seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # Names of linked gateways, by number.
        self._linked: dict[int, str] = {}
        # Members whose names were last compared.
        self._there: list[Member] | None = None
        # Logged problems of addresses that cannot be linked.
        self._problems: dict[str, str] = {}
        # By kind and subject of the warning: time when it may be logged again, and its repetitions.
        self._quiet: dict[tuple[str, str], tuple[float, int]] = {}

    def look(self, fabric: MeshNode) -> None:
        """Log the changes since the last call."""
        ended: dict[int, LinkEnded] = {}
        for event in fabric.events.take():
            if isinstance(event, LinkEnded):
                ended[event.number] = event
            else:
                self._warn(event)
        self._log_links(fabric, ended)
        self._find_same_names(fabric.members)
        for target in fabric.dialling.targets:
            if target.is_fixed and target.problem != self._problems.get(target.address, ""):
                self._problems[target.address] = target.problem
                if target.problem:
                    _log.warning("cannot link with %s: %s", target.address, target.problem)

    def _log_links(self, fabric: MeshNode, ended: dict[int, LinkEnded]) -> None:
        linked = {
            link.number: link.peer.name
            for link in fabric.links.values()
            if not link.is_registration and (link.is_ready or self._is_ending(link))
        }
        for number in self._linked.keys() - linked.keys():
            event = ended.get(number, _UNKNOWN)
            level = logging.INFO if event.is_orderly else logging.WARNING
            _log.log(
                level, "no longer linked with gateway %s: %s", self._linked[number], event.text
            )
        for number in linked.keys() - self._linked.keys():
            _log.info("linked with gateway %s", linked[number])
        self._linked = linked

    def _find_same_names(self, members: Members) -> None:
        """Warn of gateways that share a name: commands and tables cannot distinguish them."""
        there = members.there()
        if there is self._there:
            return
        self._there = there
        addresses: dict[str, list[str]] = {}
        for member in (members.own, *there):
            addresses.setdefault(member.advert.name, []).append(member.advert.address)
        for name, each in addresses.items():
            if len(each) > 1:
                where = ", ".join(sorted(each))
                text = f"{len(each)} gateways are named {name}: {where}; give each its own name"
                self._warn(Warned("SameName", name, text))

    def _is_ending(self, link: Link) -> bool:
        """Return whether a link that was ready is ending, and its reason is not yet known."""
        return link.peer.is_over and link.number in self._linked

    def _warn(self, event: Warned) -> None:
        now = self._clock()
        key = event.kind, event.about
        if key not in self._quiet and len(self._quiet) >= KINDS_MAX:
            self._quiet = {each: what for each, what in self._quiet.items() if what[0] > now}
            if len(self._quiet) >= KINDS_MAX:
                key = event.kind, _OTHERS
        until, unlogged = self._quiet.get(key, (0.0, 0))
        if now < until:
            self._quiet[key] = until, unlogged + 1
            return
        self._quiet[key] = now + WARN_EVERY_S, 0
        more = f" ({unlogged} more since the last such line)" if unlogged else ""
        _log.warning("%s%s", event.text, more)


_UNKNOWN = LinkEnded(0, "unknown reason", is_orderly=False)
