"""Request handler for `_WEFT.ask.command`: admin commands, accepted from admin keys only."""

import logging
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING, Any

from weft.broker.auth.keys import KeyRecord
from weft.broker.service import Peer
from weft.errors import NotAllowed, WeftError
from weft.gateway.mesh.command_log import CommandLog
from weft.gateway.mesh.execute_command import Heard, Obeying, Wish
from weft.gateway.requests.deferred import DeferredRequest, too_long
from weft.mesh.admin.admin_command import Judge, SignedCommand, TargetAttributes
from weft.mesh.admin.relay import Commanding, Rows
from weft.mesh.links.signing import verify
from weft.transports.loop.turn import Turn
from weft.wire.message.message import Message

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft.mesh.node import MeshNode

_log = logging.getLogger(__name__)

_MS = 1_000_000


class CommandDesk:
    """Admin commands for one service, given here or at another gateway of its mesh."""

    def __init__(self, turn: Turn, wish: Wish, status: "Callable[[], Any]", region: str) -> None:
        service = turn.service
        self._turn = turn
        self._wish = wish
        self._obeying = Obeying(service, self._have_done, status)
        self._judge = Judge(service.name, verify, time_ns() // _MS)
        self._keys: tuple[KeyRecord, ...] = ()
        self._others: tuple[str, ...] = ()
        place = TargetAttributes(service.gateway, "", region)
        self.commanding = Commanding(service, place, self._judge, self._obeying.obey)
        service.desks["command"] = self._ask

    def keep(self, data: Path) -> None:
        """Log commands below a folder, and restore the nonces of earlier ones."""
        log = CommandLog(data / f"commands-{self._turn.service.name}.log")
        try:
            for nonce, ends_ms in log.recalled():
                self._judge.remember(nonce, ends_ms)
        except OSError as error:
            _log.error("earlier commands cannot be restored: %s", error)
        self._obeying.log = log

    def link(self, fabric: "MeshNode") -> None:
        """Receive commands from other gateways, and relay commands given here."""
        node = fabric.members.own.node.hex()
        self.commanding.place = self.commanding.place._replace(node=node)
        fabric.obey(self.commanding)
        self._obeying.limit_links = fabric.limit_links

    def set_keys(self, keys: tuple[KeyRecord, ...]) -> None:
        """Accept commands of administrators with these keys, as long as the keys are usable."""
        self._keys = keys
        self._obeying.know(keys)
        self._look()

    def set_others(self, admins: tuple[str, ...]) -> None:
        """Accept commands of these administrators, too, given by their public keys."""
        self._others = admins
        self._look()

    def tick(self) -> None:
        """Expire keys and pending commands; called about once a second."""
        self._look()
        self.commanding.tick()

    def _have_done(self, verb: str, value: str, tell: Heard) -> None:
        def told(problem: str, text: str) -> None:
            # Not called in a turn of the service: results are sent in the next one.
            tell(problem, text)
            self._turn.wake()

        self._wish(verb, value, told)

    def _look(self) -> None:
        now_ns = time_ns()
        usable = [each for each in self._keys if each.verifies and each.is_usable(now_ns)]
        texts = {*(each.verifies for each in usable), *self._others}
        self._judge.admins = frozenset(bytes.fromhex(text) for text in texts)

    def _ask(self, peer: Peer, reply: bytes, request: Message) -> WeftError | None:
        if peer.key is None or peer.key.role != "admin":
            return NotAllowed("commands are for keys of admins only")
        signed = SignedCommand(request.get_blob("said"), request.get_blob("signature"))
        asked = DeferredRequest(peer, reply, "command")
        return self.commanding.begin(signed, lambda rows: self._answer(asked, rows))

    def _answer(self, asked: DeferredRequest, rows: Rows) -> None:
        message = Message.from_dict({"gateways": rows})
        problem = too_long(message, self._turn.service.run.body_limit)
        if problem is None:
            asked.answer(self._turn, message)
        else:
            asked.refuse(self._turn, problem)
