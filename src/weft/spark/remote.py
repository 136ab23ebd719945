"""Journals served by gateways over HTTP, read without a shared disk."""

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

# Timeouts of a request: to connect, and between parts of the response.
CONNECT_S = 5.0
ANSWER_S = 60.0
# A gateway that did not answer is asked again after this time, if others answer.
AWAY_S = 5.0
# Bytes from the end of a file that the first request for it fetches.
END_BYTES = 128 << 10
_PAUSE_S = 0.2
_REFUSALS: dict[int, type[WeftError]] = {401: BadKey, 403: NotAllowed, 410: Damaged}


@dataclass(frozen=True, slots=True)
class Lender:
    """One gateway that serves its journal of a service."""

    address: Address
    service: str
    tls_ca: str | None
    key_file: str | None
    wait_s: float

    def get(self, path: str, span: str = "") -> tuple[bytes, dict[str, str]]:
        """Return the body and headers of a page; `span` is the range of bytes to fetch.

        Raises:
            FileNotFoundError: The gateway does not have the page any more.
            Damaged: A sealed segment is damaged.
            BadKey: The gateway has keys, and does not accept ours.
            NotAllowed: Our key may not read this journal.
            Unreachable: No answer within `wait_s`.
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
                        f"{self.address} does not serve its journal: {error}"
                    ) from error
                sleep(_PAUSE_S)

    def listing(self) -> dict[str, Any]:
        """Return the list of segments."""
        try:
            found: dict[str, Any] = json.loads(self.get("")[0])
        except FileNotFoundError as error:
            raise NotKnown(f"{self.address} has no journal of service {self.service!r}") from error
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
    """Sealed segment that is read remotely, one range of bytes at a time.

    The first request fetches its end: there Parquet has its index, and a small file is complete.
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
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Set the position; return it."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        """Return the position."""
        return self._at

    def size(self) -> int:
        """Return the size in bytes."""
        return self._size

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
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
    """Start and end positions of remote journals."""

    def __init__(self, shelf: "RemoteShelf") -> None:
        self._shelf = shelf
        # Times at which unreachable gateways are asked again.
        self._away: dict[Address, float] = {}

    def extent(self, *, is_complete: bool = True) -> Extent:
        """Return the start and end of every node's journal, and its id.

        Args:
            is_complete: Whether to wait for unreachable gateways. Otherwise they are left out, as
                long as one answers.

        Raises:
            Unreachable: One gateway does not answer in time, or none does.
        """
        listings = self._shelf.listings() if is_complete else self._listings_of_some()
        return Extent(
            starts={
                # Without segments a journal starts at its end.
                found["node"]: min((each["first"] for each in found["segments"]), default=end)
                for found in listings
                for end in (found["end"],)
            },
            ends={found["node"]: found["end"] for found in listings},
            ids={found["node"]: found["id"] for found in listings if found.get("id")},
        )

    def ends(self) -> Positions:
        """Return the next position of every node."""
        return self.extent().ends

    def starts(self) -> Positions:
        """Return the first position that every node still has."""
        return self.extent().starts

    def ids(self) -> dict[str, str]:
        """Return the id of every node's journal."""
        return self.extent().ids

    def _listings_of_some(self) -> list[dict[str, Any]]:
        """Return the listings of the gateways that answer now, at least one."""
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
                raise Unreachable("none of the gateways serves its journal") from problem
            sleep(_PAUSE_S)

    def _listing_of(self, address: Address) -> list[tuple[Address, dict[str, Any]]]:
        """Return the listing of a gateway; empty if it failed recently and others did not."""
        is_alone = len(self._away) == len(self._shelf.addresses)
        if not is_alone and self._away.get(address, 0.0) > monotonic():
            return []
        try:
            listing = self._shelf.lender(address, wait_s=0.0).listing()
        except Unreachable as error:
            if address not in self._away:
                _log.warning(
                    "%s; reading continues from the others, and from it once it is back", error
                )
            self._away[address] = monotonic() + AWAY_S
            raise
        if self._away.pop(address, None) is not None:
            _log.warning("%s is back", address)
        return [(address, listing)]


@dataclass(frozen=True, slots=True)
class RemoteShelf:
    """Journals of one service at several gateways."""

    addresses: tuple[Address, ...]
    service: str
    tls_ca: str | None
    key_file: str | None
    # Timeout for an unreachable gateway: it may be restarting.
    wait_s: float
    # Gateways by node name, found on first use.
    _lenders: dict[str, Lender] = field(default_factory=dict, compare=False)

    def listings(self) -> list[dict[str, Any]]:
        """Return the listing of every gateway.

        Raises:
            BadOption: Two gateways have the same node name.
            NotKnown: A gateway has no journal.
            Unreachable: A gateway does not answer.
        """
        return self.known([(each, self.lender(each).listing()) for each in self.addresses])

    def known(self, listings: list[tuple[Address, dict[str, Any]]]) -> list[dict[str, Any]]:
        """Store the gateways of the nodes; return their listings.

        Raises:
            BadOption: Two gateways have the same node name.
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
        """Return one of the gateways; `wait_s` replaces the timeout."""
        wait_s = self.wait_s if wait_s is None else wait_s
        return Lender(address, self.service, self.tls_ca, self.key_file, wait_s)

    def watch(self) -> RemoteEnds:
        """Return an observer of the journals' start and end positions."""
        return RemoteEnds(self)

    def position_at(self, node: str, time_ns: int) -> int | None:
        """Return the first position at a time or after it; None if there is none."""
        answer, _ = self._lender(node).get(f"/position?time_ns={max(time_ns, 0)}")
        position: int | None = json.loads(answer)["position"]
        return position

    def segments(self, node: str) -> list[Segment]:
        """Return the segments of one node, by first position."""
        return [
            Segment(
                Path(each["name"]), self.service, node, each["state"], each["first"], each["last"]
            )
            for each in self._lender(node).listing()["segments"]
        ]

    def sealed(self, segment: Segment) -> LentFile:
        """Return a sealed segment."""
        day, _, name = segment.path.parts
        return LentFile(self._lender(segment.node), f"/sealed/{quote(day)}/{quote(name)}")

    def blocks(self, segment: Segment, first: int, end: int) -> Iterator[Stretch]:
        """Yield the blocks of a segment that is not sealed, one response at a time."""
        path = f"/blocks/{quote(str(segment.path))}"
        while first < end:
            data, headers = self._lender(segment.node).get(f"{path}?first={first}")
            after = int(headers["Weft-Next"])
            if after <= first:
                return
            yield Stretch(data, 0, int(headers["Weft-Salt"]))
            first = after

    def _lender(self, node: str) -> Lender:
        """Return the gateway of a node; other gateways need not answer."""
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
                raise NotKnown(f"none of the gateways is named {node!r}")
            if monotonic() > ends:
                raise problem
            sleep(_PAUSE_S)
        return self._lenders[node]
