"""Encrypted records for lanes that leave the machine.

docs/protocol.md specifies the bytes. Each direction has its own key and numbers its records.
"""

from collections.abc import Callable
from typing import Any

from weft.errors import BadFrame, BadOption
from weft.wire.byteops import u32_at

RECORD_MAX_BYTES = 64 << 10

_TAG_BYTES = 16
_NONCE_BYTES = 12


def can_seal() -> bool:
    """Return whether the cryptography package is installed."""
    try:
        _cipher()
    except BadOption:
        return False
    return True


class Seal:
    """Encrypts sent bytes into records."""

    def __init__(self, key: bytes) -> None:
        self._encrypt = _cipher()(key).encrypt
        self._number = 0

    def seal(self, data: bytes) -> bytes:
        """Return the encrypted records of these bytes."""
        records = []
        for start in range(0, len(data), RECORD_MAX_BYTES):
            sealed = self._encrypt(
                _nonce(self._number), data[start : start + RECORD_MAX_BYTES], None
            )
            self._number += 1
            records += [len(sealed).to_bytes(4, "little"), sealed]
        return b"".join(records)


class Unseal:
    """Decrypts records in received bytes."""

    def __init__(self, key: bytes) -> None:
        self._decrypt = _cipher()(key).decrypt
        self._number = 0
        self._rest = bytearray()

    def open(self, data: bytes | memoryview) -> bytes:
        """Return the content of the records that are complete.

        Raises:
            BadFrame: A record is too long, or was not encrypted with the key.
        """
        self._rest += data
        found = []
        at = 0
        while len(self._rest) - at >= 4:
            size = u32_at(self._rest, at)
            if not _TAG_BYTES < size <= RECORD_MAX_BYTES + _TAG_BYTES:
                raise BadFrame(
                    f"record of {size} bytes on a lane, limit {RECORD_MAX_BYTES + _TAG_BYTES}"
                )
            if len(self._rest) - at - 4 < size:
                break
            found.append(self._opened(bytes(self._rest[at + 4 : at + 4 + size])))
            at += 4 + size
        del self._rest[:at]
        return b"".join(found)

    def _opened(self, sealed: bytes) -> bytes:
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415  # needs an extra

        try:
            opened: bytes = self._decrypt(_nonce(self._number), sealed, None)
        except InvalidTag as error:
            raise BadFrame("record on a lane that was not encrypted with its key") from error
        self._number += 1
        return opened


def _cipher() -> Callable[[bytes], Any]:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import (  # noqa: PLC0415  # needs an extra
            ChaCha20Poly1305,
        )
    except ModuleNotFoundError as error:
        raise BadOption(
            'lanes to other machines need cryptography: pip install "weft-mesh[mesh]"'
        ) from error
    return ChaCha20Poly1305


def _nonce(number: int) -> bytes:
    return number.to_bytes(_NONCE_BYTES, "little")
