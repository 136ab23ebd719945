"""What may be asked of a connection, a subscription or a gathering, checked before it begins."""

import dataclasses
import difflib
import logging
import re
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict, TypeVar, get_args

from weft.client.status import Gap, Logger, StatusCallback
from weft.errors import BadOption, shortened
from weft.wire.address import addresses_from
from weft.wire.since import Since, beginning
from weft.wire.subjects import checked_subject

# Longer than any key, and short enough for every greeting.
KEY_MAX = 255

WhenFull = Literal["block", "raise", "drop"]
Direct = Literal["auto", "never", "require"]
Look = Literal["auto", "never"]
Policy = Literal["cut", "drop_new", "drop_old", "latest"]

_REGION = re.compile(r"[A-Za-z0-9._-]{0,63}")
_SERVICE = re.compile(r"[A-Za-z0-9-][A-Za-z0-9_-]{0,62}")

_Value = TypeVar("_Value")


class ConnectOptions(TypedDict, total=False):
    """The keyword options of a connection; `Options` says what each means and its default."""

    service: str
    key: str | None
    name: str
    reachable_at: str
    direct: Direct
    look: Look
    wait: bool
    closest: bool | str
    region: str
    tls: ssl.SSLContext | None
    on_status: StatusCallback | None
    logger: Logger
    timeout_s: float
    connect_timeout_s: float
    backoff_first_s: float
    backoff_cap_s: float
    buffer_bytes: int
    when_full: WhenFull
    queue_bytes: int
    waiting_max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a connection behaves."""

    service: str = "default"
    # What a gateway that has keys knows us by; it is shown nowhere else.
    # None is no key, so that `os.environ.get("WEFT_KEY")` will do.
    key: str | None = field(default="", repr=False)
    # The client's own name, a subject such as `me.1`; empty lets the gateway choose one.
    name: str = ""
    # Where the client could be reached directly, told to the gateway.
    reachable_at: str = ""
    # Let the gateway offer lanes to other clients, and take them up: `auto`; `never`; or `require`:
    # publish only what goes by lanes, and nothing through the gateway.
    direct: Direct = "auto"
    # Look for an answer that is to come by a lane before the loop rests, at most 100 µs: `auto`, as
    # long as that is mostly not in vain; or `never`, where cores are scarce.
    look: Look = "auto"
    # Wait for ever for the first connection, instead of raising if no gateway can be had.
    wait: bool = False
    # Ask for the closest gateway: True the address given, a text the gateways named by it. Those
    # given are then for when that fails.
    closest: bool | str = False
    # Where this client is, in the words of the gateways' `mesh.region`: a first guess.
    region: str = ""
    # For tls:// addresses; without one the system's certificates are trusted.
    tls: ssl.SSLContext | None = None
    on_status: StatusCallback | None = None
    logger: Logger = field(default_factory=lambda: logging.getLogger("weft.client"))
    # How long a call waits that is not told otherwise.
    timeout_s: float = 10.0
    # How long reaching a gateway may take, its greeting included.
    connect_timeout_s: float = 5.0
    backoff_first_s: float = 0.05
    backoff_cap_s: float = 5.0
    # What is published and not yet sent, and what happens to more.
    buffer_bytes: int = 8 << 20
    when_full: WhenFull = "block"
    # What is received and not yet taken: by one subscription, or by the callbacks of a blocking
    # connection together.
    queue_bytes: int = 4 << 20
    # How many answers may be awaited at once.
    waiting_max: int = 65_536

    def __post_init__(self) -> None:
        """Refuse what cannot be.

        Raises:
            BadOption: an option has an impossible value.
        """
        _check_choice("when_full", self.when_full, get_args(WhenFull))
        _check_choice("direct", self.direct, get_args(Direct))
        _check_choice("look", self.look, get_args(Look))
        for name in ("service", "name", "reachable_at", "region"):
            _check_text(name, getattr(self, name))
        if self.key is not None:
            _check_text("key", self.key)
        for name in ("timeout_s", "connect_timeout_s", "backoff_first_s", "backoff_cap_s"):
            _check_positive(name, getattr(self, name))
        for name in ("buffer_bytes", "queue_bytes", "waiting_max"):
            _check_positive(name, getattr(self, name))
        if not _SERVICE.fullmatch(self.service):
            raise BadOption(
                f"service {shortened(self.service)} is not 1 to 63 letters, digits, '-' and '_'"
            )
        key = self.key or ""
        if len(key) > KEY_MAX or not (key.isascii() and key.isprintable()):
            raise BadOption(f"key is not the text of a key: {len(key)} characters")
        if self.name:
            checked_subject(self.name)
        if isinstance(self.closest, str):
            addresses_from(self.closest)
        if not _REGION.fullmatch(self.region):
            raise BadOption(
                f"region {shortened(self.region)} is not up to 63 letters, digits, '-', '_' and '.'"
            )


class SubscribeOptions(TypedDict, total=False):
    """The keyword options of a subscription; `Wish` says what each means and its default."""

    group: str
    policy: Policy
    listen_only: bool
    queue_bytes: int
    on_gap: Callable[[Gap], object] | None
    since: Since | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """How a subscription is served."""

    # Of the members of a queue group one gets each message.
    group: str = ""
    # What the gateway does when this reader falls behind.
    policy: Policy = "cut"
    # Hear messages, but never be chosen to answer a request.
    listen_only: bool = False
    # 0: as much as the connection's option says.
    queue_bytes: int = 0
    on_gap: Callable[[Gap], object] | None = None
    # First what the journal has: from a position on, a moment, or some time ago, such as "5m".
    since: Since | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be.

        Raises:
            BadOption: an option has an impossible value.
        """
        _check_choice("policy", self.policy, get_args(Policy))
        if self.queue_bytes:
            _check_positive("queue_bytes", self.queue_bytes)
        if self.since is not None:
            beginning(self.since)
            if self.group:
                raise BadOption("a member of a group has no history: since and group exclude")


class PublishOptions(TypedDict, total=False):
    """The keyword options of publish()."""

    reply: str
    not_back: bool
    masked: bool
    acknowledge: bool


class RequestOptions(TypedDict, total=False):
    """The keyword options of send_request()."""

    resend: bool
    masked: bool


class GatherOptions(TypedDict, total=False):
    """When a gathering of answers ends: at whichever comes first."""

    count: int | None
    quiet_s: float | None
    deadline_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathering:
    """When a gathering of answers ends: at whichever comes first."""

    # So many answers.
    count: int | None = None
    # So long a pause after an answer.
    quiet_s: float | None = None
    # So long after the question; None: the connection's `timeout_s`.
    deadline_s: float | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be.

        Raises:
            BadOption: an option has an impossible value.
        """
        for name in ("count", "quiet_s", "deadline_s"):
            value = getattr(self, name)
            if value is not None:
                _check_positive(name, value)


def made(kind: type[_Value], given: Mapping[str, Any]) -> _Value:
    """An options value from keywords.

    Raises:
        BadOption: there is no such option, or it cannot have this value.
    """
    known = [each.name for each in dataclasses.fields(kind)]  # type: ignore[arg-type]  # only ours
    for name in given:
        if name not in known:
            nearest = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {nearest[0]!r}?" if nearest else f", only {', '.join(known)}"
            raise BadOption(f"there is no option {name!r}{hint}")
    return kind(**given)


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise BadOption(f"{name} is {value!r}, not one of {', '.join(choices)}")


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise BadOption(f"{name} is a {type(value).__name__}, not a str")


def _check_positive(name: str, value: object) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise BadOption(f"{name} is {value!r}, not a number")
    # Written so that it catches what is not a number at all.
    if not value > 0:
        raise BadOption(f"{name} is {value}, and must be more than 0")
