"""Journals that gateways lend: read over HTTP, so that no disk has to be shared."""

import http.client
import io
import json
import logging
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from urllib.parse import quote

from weft.client.connection.http_get import problem_in
from weft.errors import BadKey, BadOption, NotAllowed, NotKnown, Unreachable, WeftError
from weft.journal.parquet.sealed_files import Damaged
from weft.journal.read.sources import Stretch
from weft.journal.segment.file_names import Segment
from weft.journal.segment.tail import Extent, Positions
from weft.spark.credentials import key_at
from weft.wire.address import Address

_log = logging.getLogger(__name__)

# How long one request may take: to connect, and until the answer goes on.
CONNECT_S = 5.0
ANSWER_S = 60.0
# A gateway that did not answer is asked again after this long, where others do.
AWAY_S = 5.0
# How much of the end of a file comes with the first request for it.
END_BYTES = 128 << 10
_PAUSE_S = 0.2
_REFUSALS: dict[int, type[WeftError]] = {401: BadKey, 403: NotAllowed, 410: Damaged}


@dataclass(frozen=True, slots=True)
class Lender:
    """One gateway that lends its journal of a service."""

    address: Address
    service: str
    tls_ca: str | None
    key_file: str | None
    wait_s: float

    def get(self, path: str, span: str = "") -> tuple[bytes, dict[str, str]]:
        """What it answers, and the headers; `span` is the range of bytes that is wanted.

        Raises:
            FileNotFoundError: it has no such thing any more.
            Damaged: it has a sealed segment, but not as it was sealed.
            BadKey: it has keys, and does not accept ours.
            NotAllowed: our key may not read this journal.
            Unreachable: it did not answer for as long as one waits.
        """
        ends = monotonic() + self.wait_s
        while True:
            try:
                return self._get(path, span)
            except (OSError, http.client.HTTPException) as error:
                if isinstance(error, FileNotFoundError | ssl.SSLCertVerificationError):
                    raise
                if monotonic() > ends:
                    raise Unreachable(
                        f"{self.address} does not lend its journal: {error}"
                    ) from error
                sleep(_PAUSE_S)

    def listing(self) -> dict[str, Any]:
        """What it has."""
        try:
            found: dict[str, Any] = json.loads(self.get("")[0])
        except FileNotFoundError as error:
            raise NotKnown(
                f"{self.address} keeps no journal of service {self.service!r}"
            ) from error
        return found

    def _get(self, path: str, span: str) -> tuple[bytes, dict[str, str]]:
        connection = self._connection()
        try:
            headers = {"Range": f"bytes={span}"} if span else {}
            if key := key_at(self.key_file):
                headers["Authorization"] = f"Bearer {key}"
            connection.connect()
            connection.sock.settimeout(ANSWER_S)
            connection.request("GET", f"/journal/{self.service}{path}", headers=headers)
            answer = connection.getresponse()
            body = answer.read()
        finally:
            connection.close()
        if answer.status == 404:
            raise FileNotFoundError(f"{path} at {self.address}: {problem_in(body)}")
        if answer.status in _REFUSALS:
            raise _REFUSALS[answer.status](f"{self.address}: {problem_in(body)}")
        if answer.status not in (200, 206):
            raise ConnectionError(f"status {answer.status}: {problem_in(body)}")
        return body, dict(answer.headers)

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self.address.host, self.address.port
        if not self.address.is_tls:
            return http.client.HTTPConnection(host, port, timeout=CONNECT_S)
        context = ssl.create_default_context(cafile=self.tls_ca)
        return http.client.HTTPSConnection(host, port, timeout=CONNECT_S, context=context)


class LentFile(io.RawIOBase):
    """A sealed segment that is read where it is, a range of bytes at a time.

    Its end comes with the first request: there Parquet says what is where, and a small file is
    there as a whole.
    """

    def __init__(self, lender: Lender, path: str) -> None:
        super().__init__()
        self._lender = lender
        self._path = path
        self._end, headers = lender.get(path, f"-{END_BYTES}")
        span = headers.get("Content-Range")
        self._size = int(span.rpartition("/")[2]) if span else len(self._end)
        self._at = 0

    def readable(self) -> bool:
        """It can be read."""
        return True

    def seekable(self) -> bool:
        """It can be read from anywhere."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to an offset."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        """Where it is."""
        return self._at

    def size(self) -> int:
        """How many bytes it has."""
        return self._size

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        end = self._size if size < 0 else min(self._at + size, self._size)
        if end <= self._at:
            return b""
        known = self._size - len(self._end)
        if self._at >= known:
            data = self._end[self._at - known : end - known]
        else:
            data, _ = self._lender.get(self._path, f"{self._at}-{end - 1}")
        self._at += len(data)
        return data


class RemoteEnds:
    """Where lent journals begin and end."""

    def __init__(self, shelf: "RemoteShelf") -> None:
        self._shelf = shelf
        # When gateways that do not answer are asked again.
        self._away: dict[Address, float] = {}

    def extent(self, *, is_complete: bool = True) -> Extent:
        """Return where every node's journal begins and ends, and its id.

        Args:
            is_complete: Whether to wait for gateways that do not answer. Otherwise they are left
                out, as long as one answers.

        Raises:
            Unreachable: one does not answer, or none of them, for as long as one waits.
        """
        listings = self._shelf.listings() if is_complete else self._listings_of_some()
        return Extent(
            starts={
                # Where every segment was removed, a journal begins where it goes on.
                found["node"]: min((each["first"] for each in found["segments"]), default=end)
                for found in listings
                for end in (found["end"],)
            },
            ends={found["node"]: found["end"] for found in listings},
            ids={found["node"]: found["id"] for found in listings if found.get("id")},
        )

    def ends(self) -> Positions:
        """The next position of every node."""
        return self.extent().ends

    def starts(self) -> Positions:
        """The first position that every node still has."""
        return self.extent().starts

    def ids(self) -> dict[str, str]:
        """Return the id of every node's journal."""
        return self.extent().ids

    def _listings_of_some(self) -> list[dict[str, Any]]:
        """What the gateways have that answer now: one at least."""
        ends = monotonic() + self._shelf.wait_s
        while True:
            problem: Unreachable | None = None
            found = []
            for address in self._shelf.addresses:
                try:
                    found += self._listing_of(address)
                except Unreachable as error:
                    problem = error
            if found:
                return self._shelf.known(found)
            if monotonic() > ends:
                raise Unreachable("none of the gateways lends its journal") from problem
            sleep(_PAUSE_S)

    def _listing_of(self, address: Address) -> list[tuple[Address, dict[str, Any]]]:
        """What a gateway has; nothing if it was away a moment ago, and others are not."""
        is_alone = len(self._away) == len(self._shelf.addresses)
        if not is_alone and self._away.get(address, 0.0) > monotonic():
            return []
        try:
            listing = self._shelf.lender(address, wait_s=0.0).listing()
        except Unreachable as error:
            if address not in self._away:
                _log.warning(
                    "%s; reading goes on with the others, and there when it is back", error
                )
            self._away[address] = monotonic() + AWAY_S
            raise
        if self._away.pop(address, None) is not None:
            _log.warning("%s is back", address)
        return [(address, listing)]


@dataclass(frozen=True, slots=True)
class RemoteShelf:
    """The journals of one service at some gateways."""

    addresses: tuple[Address, ...]
    service: str
    tls_ca: str | None
    key_file: str | None
    # How long to wait for one that is not there: it may be starting again.
    wait_s: float
    # Which gateway a node is; found out when it is needed first.
    _lenders: dict[str, Lender] = field(default_factory=dict, compare=False)

    def listings(self) -> list[dict[str, Any]]:
        """What every gateway has.

        Raises:
            BadOption: two of them are one node.
            NotKnown: one keeps no journal.
            Unreachable: one does not answer.
        """
        return self.known([(each, self.lender(each).listing()) for each in self.addresses])

    def known(self, listings: list[tuple[Address, dict[str, Any]]]) -> list[dict[str, Any]]:
        """Remember which gateways the nodes are; return what they have.

        Raises:
            BadOption: two of them are one node.
        """
        found: dict[str, Address] = {}
        for address, listing in listings:
            node = listing["node"]
            if node in found:
                raise BadOption(f"{found[node]} and {address} are both {node!r}")
            found[node] = address
            self._lenders[node] = self.lender(address)
        return [listing for _, listing in listings]

    def lender(self, address: Address, wait_s: float | None = None) -> Lender:
        """Return one of the gateways, which is waited for as long as this says."""
        wait_s = self.wait_s if wait_s is None else wait_s
        return Lender(address, self.service, self.tls_ca, self.key_file, wait_s)

    def watch(self) -> RemoteEnds:
        """Look where they begin and end."""
        return RemoteEnds(self)

    def position_at(self, node: str, time_ns: int) -> int | None:
        """The first position at a time or after it; None if there is none."""
        answer, _ = self._lender(node).get(f"/position?time_ns={max(time_ns, 0)}")
        position: int | None = json.loads(answer)["position"]
        return position

    def segments(self, node: str) -> list[Segment]:
        """What there is of one node, by first position."""
        return [
            Segment(
                Path(each["name"]), self.service, node, each["state"], each["first"], each["last"]
            )
            for each in self._lender(node).listing()["segments"]
        ]

    def sealed(self, segment: Segment) -> LentFile:
        """A sealed segment."""
        day, _, name = segment.path.parts
        return LentFile(self._lender(segment.node), f"/sealed/{quote(day)}/{quote(name)}")

    def blocks(self, segment: Segment, first: int, end: int) -> Iterator[Stretch]:
        """Stretches of a segment that is not sealed."""
        path = f"/blocks/{quote(str(segment.path))}"
        while first < end:
            data, headers = self._lender(segment.node).get(f"{path}?first={first}")
            after = int(headers["Weft-Next"])
            if after <= first:
                return
            yield Stretch(data, 0, int(headers["Weft-Salt"]))
            first = after

    def _lender(self, node: str) -> Lender:
        """Return the gateway that is a node; others need not answer."""
        ends = monotonic() + self.wait_s
        while node not in self._lenders:
            problem: Unreachable | None = None
            for address in self.addresses:
                lender = self.lender(address, wait_s=0.0)
                try:
                    self._lenders[lender.listing()["node"]] = self.lender(address)
                except Unreachable as error:
                    problem = error
            if node in self._lenders:
                break
            if problem is None:
                raise NotKnown(f"none of the gateways is {node!r}")
            if monotonic() > ends:
                raise problem
            sleep(_PAUSE_S)
        return self._lenders[node]
