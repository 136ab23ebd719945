"""Options of connections, subscriptions and requests, validated on creation."""

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

# Longer than any key, and short enough for the handshake's size limit.
KEY_MAX = 255

WhenFull = Literal["block", "raise", "drop"]
Direct = Literal["auto", "never", "require"]
Look = Literal["auto", "never"]
Policy = Literal["cut", "drop_new", "drop_old", "latest"]

_REGION = re.compile(r"[A-Za-z0-9._-]{0,63}")
_SERVICE = re.compile(r"[A-Za-z0-9-][A-Za-z0-9_-]{0,62}")

_Value = TypeVar("_Value")


class ConnectOptions(TypedDict, total=False):
    """Keyword options of a connection; `Options` documents their meanings and defaults."""

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
    """Options of a connection."""

    service: str = "default"
    # Authenticates the client at gateways that require keys; never shown or logged.
    # None means no key, so that `os.environ.get("WEFT_KEY")` can be passed as it is.
    key: str | None = field(default="", repr=False)
    # The client's own name, a subject such as `me.1`; empty lets the gateway choose one.
    name: str = ""
    # Address at which other clients can reach this one directly; sent to the gateway.
    reachable_at: str = ""
    # Direct connections (lanes) to other clients: `auto` uses the gateway's offers; `never`;
    # `require` publishes through lanes only and never through the gateway.
    direct: Direct = "auto"
    # Spin for up to 100 µs for the next lane message before blocking in the event loop: `auto`
    # backs off when spinning does not pay; `never` suits machines with few cores.
    look: Look = "auto"
    # Wait without limit for the first connection instead of raising if no gateway is reachable.
    wait: bool = False
    # Connect to the closest gateway: True looks it up at the address given, a str at the discovery
    # addresses that it holds; the given addresses are then the fallback.
    closest: bool | str = False
    # Region of this client, a name as in `mesh.region` of the gateways: a hint for the choice.
    region: str = ""
    # For tls:// addresses; default: the certificates that the system trusts.
    tls: ssl.SSLContext | None = None
    on_status: StatusCallback | None = None
    logger: Logger = field(default_factory=lambda: logging.getLogger("weft.client"))
    # Default timeout of calls.
    timeout_s: float = 10.0
    # Limit for connecting to one gateway, including the handshake.
    connect_timeout_s: float = 5.0
    backoff_first_s: float = 0.05
    backoff_cap_s: float = 5.0
    # Limit on published bytes that are not yet sent, and what publish() does when it is reached.
    buffer_bytes: int = 8 << 20
    when_full: WhenFull = "block"
    # Limit on received bytes that are not yet processed: per subscription, or for all callbacks of
    # a blocking connection together.
    queue_bytes: int = 4 << 20
    # Limit on pending replies, on subscriptions, and on messages that wait for buffer space.
    waiting_max: int = 65_536

    def __post_init__(self) -> None:
        """Validate the values.

        Raises:
            BadOption: Invalid value of an option.
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
            raise BadOption(
                f"key is not up to {KEY_MAX} printable ASCII characters: it has {len(key)}"
            )
        if self.name:
            checked_subject(self.name)
        if isinstance(self.closest, str):
            addresses_from(self.closest)
        if not _REGION.fullmatch(self.region):
            raise BadOption(
                f"region {shortened(self.region)} is not up to 63 letters, digits, '-', '_' and '.'"
            )


class SubscribeOptions(TypedDict, total=False):
    """Keyword options of a subscription; `SubscriptionOptions` documents them."""

    group: str
    policy: Policy
    listen_only: bool
    queue_bytes: int
    on_gap: Callable[[Gap], object] | None
    since: Since | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionOptions:
    """Options of a subscription."""

    # Queue group: each message reaches exactly one of its members.
    group: str = ""
    # What the gateway does when this subscriber becomes a slow consumer.
    policy: Policy = "cut"
    # Receive messages, but never be selected as the responder of a request.
    listen_only: bool = False
    # 0: the `queue_bytes` of the connection.
    queue_bytes: int = 0
    on_gap: Callable[[Gap], object] | None = None
    # Replay the journal first: from a position, a time, or an age such as "5m".
    since: Since | None = None

    def __post_init__(self) -> None:
        """Validate the values.

        Raises:
            BadOption: Invalid value of an option.
        """
        _check_choice("policy", self.policy, get_args(Policy))
        if self.queue_bytes:
            _check_positive("queue_bytes", self.queue_bytes)
        if self.since is not None:
            beginning(self.since)
            if self.group:
                raise BadOption("a member of a group has no history: since and group exclude")


class PublishOptions(TypedDict, total=False):
    """Keyword options of publish()."""

    reply: str
    not_back: bool
    masked: bool
    acknowledge: bool


class RequestOptions(TypedDict, total=False):
    """Keyword options of send_request()."""

    resend: bool
    masked: bool


class GatherOptions(TypedDict, total=False):
    """Limits of a gather() call; the first one reached ends it."""

    count: int | None
    quiet_s: float | None
    deadline_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GatherLimits:
    """Limits of a gather() call; the first one reached ends it."""

    # Maximum number of answers.
    count: int | None = None
    # Maximum time after an answer without another one.
    quiet_s: float | None = None
    # Maximum time after the request; None: the connection's `timeout_s`.
    deadline_s: float | None = None

    def __post_init__(self) -> None:
        """Validate the values.

        Raises:
            BadOption: Invalid value of an option.
        """
        for name in ("count", "quiet_s", "deadline_s"):
            value = getattr(self, name)
            if value is not None:
                _check_positive(name, value)


def made(kind: type[_Value], given: Mapping[str, Any]) -> _Value:
    """Return the options of this type with the given keywords.

    Raises:
        BadOption: Unknown option, or invalid value.
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
    # Written so that it rejects NaN, too.
    if not value > 0:
        raise BadOption(f"{name} is {value}, and must be more than 0")
