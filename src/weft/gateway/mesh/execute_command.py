"""Execution of admin commands, by the service itself or by its front.

Each command is logged on disk before it is executed, and again with its result.
"""

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec

from weft import distribution
from weft.broker.auth.keys import KeyRecord
from weft.broker.replies import end_with
from weft.broker.service import Peer, Service
from weft.broker.system_events import announce
from weft.errors import BadOption, ClosedByAdmin, WeftError, shortened
from weft.gateway.config.mesh_settings import MAX_LINKS_MAX
from weft.gateway.mesh.command_log import CommandLog, LoggedCommand, about
from weft.mesh.admin.admin_command import Command
from weft.mesh.admin.relay import DONE, FAILED, CommandOutcome, Facts, Tell
from weft.wire.message.message import Message

_log = logging.getLogger(__name__)

# Commands that the front executes, for all services of a gateway.
OF_THE_FRONT = ("drain", "reload", "log", "ban")
_BEGUN = "begun"
_FACTS_OF_STATUS = ("connections", "subscriptions", "messages_in", "message_rate", "slow_readers")

# Passes a command to the front; the callback gets the result: a problem, or a sentence.
Heard = Callable[[str, str], None]
Wish = Callable[[str, str, Heard], None]


class Obeying:
    """Executor of admin commands for one service; `status` returns its status."""

    def __init__(self, service: Service, wish: Wish, status: Callable[[], Any]) -> None:
        self._service = service
        self._wish = wish
        self._status = status
        self.log: CommandLog | None = None
        # Sets the largest number of links; None: there is no mesh.
        self.limit_links: Callable[[int], None] | None = None
        self._names: dict[str, str] = {}
        self._verbs: dict[str, Callable[[str], tuple[str, Facts | None]]] = {
            "status": self._tell_status,
            "close": self._close,
            "links": self._limit,
        }

    def know(self, keys: tuple[KeyRecord, ...]) -> None:
        """Set the names of administrators, by the public keys in their key records."""
        self._names = {each.verifies: each.name for each in keys if each.verifies}

    def obey(self, command: Command, tell: Tell) -> None:
        """Execute a command and report its result."""
        try:
            self._write(command, _BEGUN, "")
        except OSError as error:
            tell(CommandOutcome(FAILED, f"the command cannot be logged: {error.strerror}"))
            return
        step = self._have_done if command.verb in OF_THE_FRONT else self._do
        try:
            step(command, tell)
        except WeftError as error:
            self._end(command, tell, str(error), "")

    def _have_done(self, command: Command, tell: Tell) -> None:
        self._wish(command.verb, command.value, lambda *said: self._end(command, tell, *said))

    def _do(self, command: Command, tell: Tell) -> None:
        verb = self._verbs.get(command.verb)
        if verb is None:
            known = ", ".join((*self._verbs, *OF_THE_FRONT))
            raise BadOption(f"there is no command {shortened(command.verb)}, only {known}")
        self._end(command, tell, "", *verb(command.value))

    def _end(
        self, command: Command, tell: Tell, problem: str, text: str, facts: Facts | None = None
    ) -> None:
        state, said = (FAILED, problem) if problem else (DONE, text)
        try:
            self._write(command, state, said)
        except OSError as error:
            _log.error("the result of a command cannot be logged: %s", error.strerror)
        tell(CommandOutcome(state, said, facts))

    def _write(self, command: Command, state: str, text: str) -> None:
        admin = command.admin.hex()
        entry = LoggedCommand(
            time=datetime.now(UTC).isoformat(timespec="milliseconds"),
            admin=admin,
            name=self._names.get(admin, ""),
            verb=command.verb,
            value=command.value,
            target=command.target,
            nonce=command.nonce.hex(),
            ends_ms=command.ends_ms,
            state=state,
            text=text,
        )
        if self.log is not None:
            self.log.write(entry)
        who = entry.name or f"{admin[:16]}…"
        what = f"{command.verb} {command.value}".strip()
        _log.info("command of %s for %s: %s: %s %s", who, command.target, what, state, text)
        announce(self._service, "command", Message.from_dict(about(entry)))

    # Commands that a service executes itself.

    def _tell_status(self, _value: str) -> tuple[str, Facts | None]:
        status = msgspec.to_builtins(self._status())
        facts = {name: status[name] for name in _FACTS_OF_STATUS}
        mesh = status["mesh"] or {}
        facts |= {name: mesh.get(name, 0) for name in ("nodes", "links", "lost")}
        facts["uptime_s"] = status["uptime_s"]
        facts["version"] = distribution.installed_version()
        return "", facts

    def _close(self, value: str) -> tuple[str, Facts | None]:
        found = [peer for peer in self._service.peers.values() if self._is_named(peer, value)]
        if not found:
            raise BadOption(f"there is no connection with the number or name {shortened(value)}")
        for peer in found:
            end_with(peer, ClosedByAdmin("an administrator closed this connection"))
        return f"{len(found)} closed", None

    def _is_named(self, peer: Peer, value: str) -> bool:
        is_client = peer.carrier is None and peer.is_greeted
        return is_client and value in (str(peer.number), peer.name)

    def _limit(self, value: str) -> tuple[str, Facts | None]:
        count = int(value) if value.isascii() and value.isdigit() else 0
        if not 1 <= count <= MAX_LINKS_MAX:
            raise BadOption(f"links {shortened(value)} is not in 1 … {MAX_LINKS_MAX}")
        if self.limit_links is None:
            raise BadOption("this gateway is in no mesh")
        self.limit_links(count)
        return f"at most {count} links until a restart", None
