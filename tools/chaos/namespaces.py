"""The mesh in network namespaces, one for each gateway, on bridges in one of the tool's own.

Each gateway has two interfaces: one for its links, which is broken, and one for its clients, which
is not. No namespace has a name: each is gone with the last process in it, whatever ends the tool.
"""

import asyncio
import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from tools.chaos.gateways import Gateway, Site
from tools.chaos.plan import FLAP, ISOLATE, KINDS, ONE_WAY, Fault
from tools.chaos.proxy import Way

from weft.broker.auth.keys import ANY_SERVICE
from weft.gateway.keys.manage import make_key, new_record

NAME = "namespaces"
PORT = 7411
_TOOLS = ("ip", "nsenter", "ss", "unshare")
_BRIDGES = {"links": "10.77.1", "clients": "10.77.2"}
# What comes from these is dropped where it arrives.
_RULES = """
add table inet chaos
add set inet chaos gone { type ipv4_addr; }
add chain inet chaos input { type filter hook input priority 0; }
add rule inet chaos input ip saddr @gone drop
"""
# Nobody has this address: what is sent there is lost, and nobody is told.
_NOBODY = "02:00:00:00:00:01"


class NotPossible(Exception):
    """There can be no namespaces here, and why."""


def check_possible() -> None:
    """See that everything is there that namespaces need.

    Raises:
        NotPossible: something is not.
    """
    if os.geteuid() != 0:
        raise NotPossible("only root can make network namespaces")
    for tool in _TOOLS:
        if shutil.which(tool) is None:
            raise NotPossible(f"there is no {tool}")
    tried = subprocess.run(
        ("unshare", "--net", "ip", "link", "add", "tried", "type", "veth"),
        check=False,
        capture_output=True,
        text=True,
    )
    if tried.returncode:
        raise NotPossible(f"there can be no veth in a namespace: {' '.join(tried.stderr.split())}")


def enter(arguments: list[str]) -> None:
    """Begin anew in a namespace of one's own; does not return.

    Raises:
        NotPossible: there can be none.
    """
    check_possible()
    sys.stdout.flush()
    os.execvp("unshare", ["unshare", "--net", sys.executable, *arguments])  # noqa: S606


class Namespaces:
    """So many gateways, each in a namespace that a process of ours holds open."""

    name = NAME
    kinds = KINDS

    def __init__(self, count: int) -> None:
        self._count = count
        self._has_rules = shutil.which("nft") is not None
        self._holders: list[subprocess.Popen[bytes]] = []
        self._stack = ExitStack()

    async def __aenter__(self) -> Self:
        with self._stack:
            _run("ip", "link", "set", "lo", "up")
            for bridge, net in _BRIDGES.items():
                _run("ip", "link", "add", bridge, "type", "bridge")
                _run("ip", "address", "add", f"{net}.254/24", "dev", bridge)
                _run("ip", "link", "set", bridge, "up")
            for number in range(self._count):
                self._add(number)
            # Nothing went wrong: they stay until the end.
            self._stack = self._stack.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def site(self, number: int) -> Site:
        """Where a gateway runs."""
        return Site(self._inside(number), "0.0.0.0", _client_host(number), PORT)  # noqa: S104

    def equip(self, gateway: Gateway) -> None:
        """Tell a gateway where others find it, and give it a key for its clients."""
        gateway.settings |= {"mesh.address": self.joined(gateway.number), "mesh.plain": "allowed"}
        made = make_key(gateway.data, new_record("chaos", "admin", ANY_SERVICE))
        gateway.key = made.text

    def joined(self, number: int) -> str:
        """What others dial."""
        return f"{_link_host(number)}:{PORT}"

    def ready(self, gateway: Gateway) -> None:
        """A gateway listens now."""

    async def begin(self, fault: Fault) -> None:
        """Break links."""
        await asyncio.to_thread(self._begin, fault)

    async def end(self, fault: Fault) -> None:
        """Mend them."""
        await asyncio.to_thread(self._end, fault)

    def _begin(self, fault: Fault) -> None:
        match fault.kind:
            case kind if kind == ISOLATE:
                self._in(fault.gateway, "ip", "link", "set", "links", "down")
            case kind if kind == FLAP:
                for way in _both(fault):
                    self._in(way.source, "ip", "route", "add", "prohibit", _link_host(way.target))
                    self._in(way.source, "ss", "--kill", "dst", _link_host(way.target))
            case kind if kind == ONE_WAY:
                self._drop(Way(fault.gateway, fault.other))
            case _:
                for way in _both(fault):
                    self._drop(way)

    def _end(self, fault: Fault) -> None:
        match fault.kind:
            case kind if kind == ISOLATE:
                self._in(fault.gateway, "ip", "link", "set", "links", "up")
            case kind if kind == FLAP:
                for way in _both(fault):
                    self._in(way.source, "ip", "route", "del", "prohibit", _link_host(way.target))
            case kind if kind == ONE_WAY:
                self._pass(Way(fault.gateway, fault.other))
            case _:
                for way in _both(fault):
                    self._pass(way)

    def _drop(self, way: Way) -> None:
        """Let nothing more through one way, and tell nobody."""
        if self._has_rules:
            gone = f"add element inet chaos gone {{ {_link_host(way.source)} }}"
            self._in(way.target, "nft", gone)
        else:
            self._in(way.source, *_neighbour(way, "replace"), "lladdr", _NOBODY, "nud", "permanent")

    def _pass(self, way: Way) -> None:
        if self._has_rules:
            gone = f"delete element inet chaos gone {{ {_link_host(way.source)} }}"
            self._in(way.target, "nft", gone)
        else:
            self._in(way.source, *_neighbour(way, "del"))

    def _add(self, number: int) -> None:
        """Make a namespace with its interfaces; it is there as long as its holder is."""
        holder = subprocess.Popen(
            ("unshare", "--net", "sh", "-c", "echo; exec cat"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._holders.append(holder)
        self._stack.callback(holder.communicate)
        if holder.stdout is None or not holder.stdout.readline():
            raise NotPossible("a namespace could not be made")
        self._in(number, "ip", "link", "set", "lo", "up")
        for bridge, net in _BRIDGES.items():
            near = f"{bridge}{number}"
            _run(
                "ip",
                "link",
                "add",
                near,
                "type",
                "veth",
                "peer",
                "name",
                bridge,
                "netns",
                str(holder.pid),
            )
            _run("ip", "link", "set", near, "master", bridge, "up")
            self._in(number, "ip", "address", "add", f"{net}.{number + 1}/24", "dev", bridge)
            self._in(number, "ip", "link", "set", bridge, "up")
        if self._has_rules:
            self._in(number, "nft", _RULES)

    def _inside(self, number: int) -> tuple[str, ...]:
        return ("nsenter", f"--net=/proc/{self._holders[number].pid}/ns/net")

    def _in(self, number: int, *command: str) -> None:
        _run(*self._inside(number), *command)


def _link_host(number: int) -> str:
    return f"{_BRIDGES['links']}.{number + 1}"


def _client_host(number: int) -> str:
    return f"{_BRIDGES['clients']}.{number + 1}"


def _both(fault: Fault) -> tuple[Way, Way]:
    way = Way(fault.gateway, fault.other)
    return way, way.back


def _neighbour(way: Way, verb: str) -> tuple[str, ...]:
    return ("ip", "neighbour", verb, _link_host(way.target), "dev", "links")


def _run(*command: str) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as error:
        raise NotPossible(f"{' '.join(command)}: {' '.join(error.stderr.split())}") from error
