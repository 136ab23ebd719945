"""Relay of admin commands: sends local ones to their targets, executes remote ones.

Every target gateway validates the command itself and reports an outcome. The caller gets one row
per target, including targets that did not answer.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from weft.broker.service import Service
from weft.errors import BadOption, NotAllowed, Overloaded, WeftError, shortened
from weft.mesh.admin.admin_command import (
    NODE,
    Command,
    CommandRefusal,
    Judge,
    SignedCommand,
    TargetAttributes,
    is_for,
)
from weft.mesh.membership.members import Member
from weft.mesh.membership.mesh_handle import Mesh
from weft.mesh.protocol import FACTS_MAX_BYTES, CommandWord, Obeyed

# Timeout for the outcomes of a command.
WAIT_NS = 4_000_000_000
GATHERINGS_MAX = 16
# Commands per second and origin; more are rejected before their signature is checked.
COMMANDS_PER_S = 20

DONE = "done"
FAILED = "failed"
REFUSED = "refused"
SILENT = "silent"
UNREACHABLE = "unreachable"

_S = 1_000_000_000
_MS = 1_000_000

Facts = dict[str, Any]


class CommandOutcome(NamedTuple):
    """Result of a command at one gateway."""

    state: str
    text: str = ""
    facts: Facts | None = None


Tell = Callable[[CommandOutcome], None]
Obey = Callable[[Command, Tell], None]
Rows = list[Facts]
Done = Callable[[Rows], None]


class PendingCommand:
    """Pending command issued at this gateway, with the outcomes received so far."""

    def __init__(self, since_ns: int, done: Done) -> None:
        self.since_ns = since_ns
        self._done = done
        self._rows: dict[int, Facts] = {}
        self._waiting: set[int] = set()

    def expect(self, number: int, place: TargetAttributes) -> None:
        """Add a target gateway whose outcome is awaited."""
        self._rows[number] = {"number": number, "state": SILENT, "text": "", **place._asdict()}
        self._waiting.add(number)

    def hear(self, number: int, outcome: CommandOutcome) -> bool:
        """Store the outcome of one gateway; return whether all outcomes are in."""
        if number not in self._waiting:
            return False
        self._waiting.discard(number)
        self._rows[number] |= {"state": outcome.state, "text": outcome.text}
        if outcome.facts:
            self._rows[number]["facts"] = outcome.facts
        return not self._waiting

    def end(self) -> None:
        """Report all rows to the caller, sorted by name."""
        for number in self._waiting:
            self._rows[number]["text"] = f"no answer within {WAIT_NS // _S} s"
        self._done(sorted(self._rows.values(), key=_name_of))


class Commanding:
    """Command relay of one gateway; `mesh` is None without a mesh."""

    def __init__(self, service: Service, place: TargetAttributes, judge: Judge, obey: Obey) -> None:
        self._service = service
        self.place = place
        self._obey = obey
        self.judge = judge
        self.mesh: Mesh | None = None
        self._token = 0
        self._gatherings: dict[int, PendingCommand] = {}
        # Commands received in the current second, by origin.
        self._second = 0
        self._heard: Counter[int] = Counter()

    def begin(self, signed: SignedCommand, done: Done) -> WeftError | None:
        """Send a command to all of its targets; return an error if it is refused.

        `done` gets the rows of all targets after the last outcome or after WAIT_NS.
        """
        if len(self._gatherings) >= GATHERINGS_MAX:
            return Overloaded(f"{GATHERINGS_MAX} commands are pending, which is the limit")
        own = self._service.stamp.origin
        command = self._judged(own, signed)
        if isinstance(command, CommandRefusal):
            return NotAllowed(f"the command is refused: {command.text}")
        others = self._others(command.target)
        is_for_here = is_for(command.target, self.place)
        problem = self._ambiguity(command.target, others, is_for_here=is_for_here)
        if problem is not None:
            return problem
        self._token += 1
        token = self._token
        gathering = self._gatherings[token] = PendingCommand(self._service.now_ns, done)
        if is_for_here:
            gathering.expect(own, self.place)
        for member in others:
            gathering.expect(member.number, place_of(member))
        if not (others or is_for_here):
            self._end(token)
        word = CommandWord(token, signed.said, signed.signature)
        for member in others:
            if self.mesh is None or not self.mesh.say(member.number, word):
                self._gather(token, member.number, CommandOutcome(UNREACHABLE, "no path to it"))
        if is_for_here:
            self._obey(command, lambda outcome: self._gather(token, own, outcome))
        return None

    def tick(self) -> None:
        """Complete commands whose timeout has passed."""
        oldest_ns = self._service.now_ns - WAIT_NS
        for token, gathering in list(self._gatherings.items()):
            if gathering.since_ns <= oldest_ns:
                self._end(token)

    def hear(self, origin: int, word: CommandWord) -> None:
        """Validate, execute and answer a command from another gateway."""
        command = self._judged(origin, SignedCommand(word.said, word.signature))
        if isinstance(command, Command) and not is_for(command.target, self.place):
            command = CommandRefusal("NotForHere", f"it is for {command.target}")
            self._count(command.name)
        if isinstance(command, CommandRefusal):
            self._answer(origin, word.token, CommandOutcome(REFUSED, command.text))
        else:
            self._obey(command, lambda outcome: self._answer(origin, word.token, outcome))

    def hear_obeyed(self, origin: int, word: Obeyed) -> None:
        """Store the outcome that another gateway reports for a local command."""
        try:
            facts = msgspec.json.decode(word.facts) if word.facts else None
        except (msgspec.DecodeError, UnicodeDecodeError):
            self._count("BadFacts")
            return
        outcome = CommandOutcome(word.state, word.text, facts if isinstance(facts, dict) else None)
        self._gather(word.token, origin, outcome)

    def _judged(self, origin: int, signed: SignedCommand) -> Command | CommandRefusal:
        second = self._service.now_ns // _S
        if second != self._second:
            self._second = second
            self._heard.clear()
        self._heard[origin] += 1
        judged: Command | CommandRefusal
        if self._heard[origin] > COMMANDS_PER_S:
            judged = CommandRefusal("TooManyCommands", f"over {COMMANDS_PER_S} commands per second")
        else:
            judged = self.judge.judge(signed, self._service.wall_ns // _MS)
        if isinstance(judged, CommandRefusal):
            self._count(judged.name)
        return judged

    def _others(self, target: str) -> list[Member]:
        if self.mesh is None:
            return []
        return [
            member
            for member in self.mesh.members.others()
            if not member.advert.is_leaving and is_for(target, place_of(member))
        ]

    def _ambiguity(
        self, target: str, others: list[Member], *, is_for_here: bool
    ) -> BadOption | None:
        """Return an error if a command for one gateway matches several of the same name."""
        if not target.startswith(NODE):
            return None
        # An unreachable one may be an earlier installation of a reachable one, with another
        # node.key.
        ids = [
            f"{NODE}{each.node.hex()} ({each.advert.address})" for each in others if each.is_there
        ]
        if is_for_here:
            ids.append(f"{NODE}{self.place.node} (the gateway that you asked)")
        if len(ids) < 2:
            return None
        name = shortened(target.removeprefix(NODE))
        return BadOption(
            f"{len(ids)} gateways are called {name}; name one by its id: {', '.join(ids)}"
        )

    def _answer(self, origin: int, token: int, outcome: CommandOutcome) -> None:
        facts = msgspec.json.encode(outcome.facts) if outcome.facts else b""
        if len(facts) > FACTS_MAX_BYTES:
            outcome, facts = (
                CommandOutcome(FAILED, f"its answer of {len(facts)} bytes is too long"),
                b"",
            )
        if self.mesh is not None:
            self.mesh.say(origin, Obeyed(token, outcome.state, outcome.text[:255], facts))

    def _gather(self, token: int, number: int, outcome: CommandOutcome) -> None:
        gathering = self._gatherings.get(token)
        if gathering is not None and gathering.hear(number, outcome):
            self._end(token)

    def _end(self, token: int) -> None:
        self._gatherings.pop(token).end()

    def _count(self, name: str) -> None:
        if self.mesh is not None:
            self.mesh.counts.refuse(name, 1)
        else:
            self._service.count_refused(name)


def place_of(member: Member) -> TargetAttributes:
    """Return the attributes of a gateway that a target can match."""
    advert = member.advert
    return TargetAttributes(advert.name, member.node.hex(), advert.region)


def _name_of(row: Facts) -> tuple[str, int]:
    return row["name"], row["number"]
