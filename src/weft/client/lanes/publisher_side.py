"""Publisher's side of lanes: takes up offers, switches routes to lanes and back."""

import asyncio
import os
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakValueDictionary

from weft.client.lanes.dial import LaneDial
from weft.client.lanes.handshake import CallerHandshake, Invitation, Other
from weft.client.lanes.lane import Lane
from weft.client.lanes.splitter import Direct
from weft.client.status import Status, What
from weft.errors import ConnectionLost, NotAllowed, NotDirect, WeftError
from weft.wire.lane_messages import lane_frame
from weft.wire.lane_tickets import NONCE_BYTES
from weft.wire.message.message import Message

if TYPE_CHECKING:
    from weft.client.lanes.manager import LaneManager

# Limit on the receivers of an offer.
RECEIVERS_MAX = 8
# Limit on connecting and authenticating all of them.
CALL_S = 5.0


class OfferedReceiver(NamedTuple):
    """A receiver in an offer."""

    invitation: Invitation
    address: str
    unix: str
    answers: bool

    @property
    def place(self) -> str:
        """Name and address of the receiver."""
        return f"{self.invitation.other.name} at {self.address or self.unix}"


class Proof(NamedTuple):
    """Handshake for a further subject on an existing lane."""

    calling: CallerHandshake
    answered: "asyncio.Future[None]"


class Offers:
    """Lane offers of the gateway to this publisher."""

    def __init__(self, lanes: "LaneManager") -> None:
        self._lanes = lanes
        self._loop = asyncio.get_running_loop()
        self._tasks: dict[bytes, asyncio.Task[None]] = {}
        self._proofs: dict[tuple[Lane, bytes], Proof] = {}
        self._waiting: dict[bytes, asyncio.Future[None]] = {}
        self._calls: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()

    def offered(self, facts: Message) -> None:
        """Handle an offer, which lists all receivers of a subject.

        Raises:
            UsageError: Invalid offer.
        """
        subject = facts.subject.encode()
        entries = [_entry(subject, each, self._loop.time()) for each in facts.get_list("lanes")]
        if subject in self._tasks or subject in self._lanes.splitter.routes:
            return
        if not 1 <= len(entries) <= RECEIVERS_MAX:
            self._decline(subject, f"{len(entries)} receivers are not in 1 … {RECEIVERS_MAX}")
            return
        task = self._loop.create_task(self._take_up(subject, entries))
        self._tasks[subject] = task
        task.add_done_callback(lambda _: self._tasks.pop(subject, None))

    def withdrawn(self, facts: Message) -> None:
        """Handle a withdrawal: the subject goes through the gateway again."""
        subject = facts.subject.encode()
        task = self._tasks.get(subject)
        if task is not None:
            task.cancel()
        reason = str(facts.get("reason", ""))
        self.relay(subject, reason)
        self._decide(subject, NotDirect(reason))
        self._lanes.gate.tell_gateway(lane_frame("withdrawn", subject))

    def relay(self, subject: bytes, reason: str) -> None:
        """Send a subject through the gateway again."""
        direct = self._lanes.splitter.routes.get(subject)
        if direct is None:
            return
        self.tell_counts()
        del self._lanes.splitter.routes[subject]
        self._report(f"{subject.decode()} goes through the gateway again: {reason}")
        self._lanes.ends.release_unused()

    def decline(self, subject: bytes, reason: str) -> None:
        """Send a subject through the gateway again, unless it does, and report the reason to it."""
        if subject in self._lanes.splitter.routes:
            self.relay(subject, reason)
            self._decline(subject, reason)

    def lane_lost(self, lane: Lane, reason: str) -> None:
        """Handle the end of a lane: decline its routes and fail its handshakes."""
        for subject, direct in list(self._lanes.splitter.routes.items()):
            if lane.out in direct.outs:
                self.decline(subject, reason)
        for key in [key for key in self._proofs if key[0] is lane]:
            proof = self._proofs.pop(key)
            if not proof.answered.done():
                proof.answered.set_exception(ConnectionLost(reason))

    def served(self, lane: Lane, facts: Message) -> None:
        """Handle the receiver's proof for a further subject."""
        proof = self._proofs.get((lane, facts.subject.encode()))
        if proof is None:
            # The attempt was given up.
            return
        try:
            answer = proof.calling.served(facts)
        except NotAllowed:
            # It may answer an earlier ticket; if not, the attempt times out.
            return
        lane.wire.write(answer)
        _settle(proof, None)

    def refused(self, lane: Lane, facts: Message) -> None:
        """Handle the receiver's refusal of a further subject."""
        proof = self._proofs.pop((lane, facts.subject.encode()), None)
        if proof is not None:
            _settle(proof, NotAllowed(str(facts.get("reason", ""))))

    def tell_counts(self) -> None:
        """Report the messages and bytes sent through lanes since the last report."""
        flows = []
        for direct in self._lanes.splitter.routes.values():
            if direct.messages:
                flows.append([direct.subject.decode(), direct.messages, direct.bytes])
                direct.messages = direct.bytes = 0
        if flows:
            self._lanes.gate.tell_gateway(lane_frame("counts", flows=flows))

    def clear(self) -> None:
        """Cancel all offers of a lost gateway."""
        for task in self._tasks.values():
            task.cancel()
        self._lanes.splitter.routes.clear()
        for subject in list(self._waiting):
            self._decide(subject, NotDirect("the gateway is gone"))

    async def decided(self, subject: bytes) -> None:
        """Wait until a subject goes through lanes.

        Raises:
            NotDirect: The lanes were refused or could not be opened.
        """
        waiting = self._waiting.get(subject)
        if waiting is None:
            waiting = self._waiting[subject] = self._loop.create_future()
        # Several callers may wait, and each may give up alone.
        await asyncio.shield(waiting)

    def _decide(self, subject: bytes, error: WeftError | None) -> None:
        waiting = self._waiting.pop(subject, None)
        if waiting is None:
            return
        if error is None:
            waiting.set_result(None)
        else:
            waiting.set_exception(error)
            # Retrieved here, because all callers may have given up.
            waiting.exception()

    async def _take_up(self, subject: bytes, entries: list[OfferedReceiver]) -> None:
        """Switch a subject to lanes if all receivers can be reached; otherwise change nothing."""
        claimed: dict[int, Lane] = {}
        calls: dict[asyncio.Task[None], OfferedReceiver] = {}
        try:
            async with asyncio.timeout(CALL_S), asyncio.TaskGroup() as group:
                for entry in entries:
                    calls[group.create_task(self._claim(entry, claimed))] = entry
            self._go(subject, entries, claimed)
        except* WeftError as errors:
            self._stay(subject, str(errors.exceptions[0]))
        except* TimeoutError:
            missing = ", ".join(each.place for call, each in calls.items() if call.cancelled())
            self._stay(subject, f"no answer within {CALL_S:g} s from {missing}")
        finally:
            for lane in claimed.values():
                lane.claims -= 1
            self._lanes.ends.release_unused()

    async def _claim(self, entry: OfferedReceiver, claimed: dict[int, Lane]) -> None:
        """Get or open a lane to a receiver, prove the subject, and keep the lane from ending."""
        number = entry.invitation.other.number
        # Of two subjects at once, the second is proven on the lane that the first opens.
        async with self._calls.setdefault(number, asyncio.Lock()):
            lane = self._lanes.table.of(number) or await self._lanes.called_by(number)
            if lane is not None:
                lane.claims += 1
                claimed[number] = lane
                await self._prove(lane, entry.invitation)
                return
            caller = LaneDial(entry.invitation)
            await caller.call(entry.address, entry.unix)
            lane = self._lanes.begin(caller.wire, entry.invitation, caller.keys())
            lane.is_caller = True
            lane.claims += 1
            claimed[number] = lane
            await lane.confirmed

    def _go(self, subject: bytes, entries: list[OfferedReceiver], claimed: dict[int, Lane]) -> None:
        lanes = list(claimed.values())
        if not all(self._is_usable(lane) for lane in lanes):
            raise ConnectionLost("a lane was lost during its setup")
        answering = [
            claimed[entry.invitation.other.number].out for entry in entries if entry.answers
        ]
        route = Direct(subject, [lane.out for lane in lanes], answering)
        self._lanes.splitter.routes[subject] = route
        self._lanes.gate.tell_gateway(lane_frame("direct", subject))
        names = ", ".join(lane.other.name for lane in lanes)
        self._report(f"{subject.decode()} goes direct, to {names}")
        self._decide(subject, None)

    def _stay(self, subject: bytes, reason: str) -> None:
        self._decline(subject, reason)
        self._report(f"{subject.decode()} stays with the gateway: {reason}")
        self._decide(subject, NotDirect(reason))

    async def _prove(self, lane: Lane, invitation: Invitation) -> None:
        if not self._is_usable(lane):
            raise NotAllowed(f"the previous lane to {lane.other.name} is ending")
        if not lane.is_for(invitation):
            raise NotAllowed(
                f"the lane to {lane.other.name} is not encrypted, but encryption is required"
            )
        proof = Proof(
            CallerHandshake(invitation, os.urandom(NONCE_BYTES)), self._loop.create_future()
        )
        key = lane, invitation.subject
        self._proofs[key] = proof
        try:
            lane.wire.write(proof.calling.hello())
            await proof.answered
        finally:
            # An attempt that was given up expects no answer.
            if self._proofs.get(key) is proof:
                del self._proofs[key]

    def _is_usable(self, lane: Lane) -> bool:
        """Return whether a lane is open and not ending."""
        is_ending = lane.out.is_over or self._lanes.ends.is_parting(lane)
        return lane.is_open and not is_ending

    def _decline(self, subject: bytes, reason: str) -> None:
        self._lanes.gate.tell_gateway(lane_frame("declined", subject, reason=reason[:256]))

    def _report(self, detail: str) -> None:
        self._lanes.reporter.report(Status(What.LANE, detail))


def _settle(proof: Proof, error: WeftError | None) -> None:
    if proof.answered.done():
        return
    if error is None:
        proof.answered.set_result(None)
    else:
        proof.answered.set_exception(error)


def _entry(subject: bytes, facts: Message, now: float) -> OfferedReceiver:
    other = Other(facts.get_int64("receiver"), facts.get_string("name"))
    invitation = Invitation(
        subject,
        facts.get_blob("ticket"),
        facts.get_blob("key"),
        other,
        facts.get_bool("encrypt"),
        now + CALL_S,
    )
    return OfferedReceiver(
        invitation,
        facts.get_string("address"),
        facts.get_string("unix"),
        facts.get_bool("answers"),
    )
