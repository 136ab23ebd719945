"""Z85, the base 85 of ZeroMQ: bytes as printable text, five characters for four bytes.

An incomplete last group has one character more than bytes, as in CometD. Compiled: in interpreted
code a message of 1 MiB would block a worker for a tenth of a second.
"""

from weft.errors import BadField

_DIGITS = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
# The value of every byte as a digit; 85 for other bytes.
_VALUES = bytes(_DIGITS.find(byte) if byte in _DIGITS else 85 for byte in range(256))
_NO_DIGIT = 85
_WORD_MAX = (1 << 32) - 1


def encode(data: bytes) -> bytes:
    """Return bytes as Z85."""
    missing = -len(data) % 4
    padded = bytearray(data) + bytes(missing)
    groups = len(padded) // 4
    made = bytearray(5 * groups)
    for group in range(groups):
        at = 4 * group
        word = 0
        for place in range(4):
            word = word * 256 + padded[at + place]
        to = 5 * group
        for place in range(5):
            made[to + 4 - place] = _DIGITS[word % 85]
            word //= 85
    return bytes(made[: len(made) - missing])


def decode(text: bytes) -> bytes:
    """Return the bytes of a Z85 text.

    Raises:
        BadField: invalid Z85.
    """
    missing = -len(text) % 5
    if missing == 4:
        raise BadField(f"{len(text)} characters of Z85 do not make whole bytes")
    # The highest digit: truncating the last group must not carry into its first bytes.
    padded = bytearray(text) + b"#" * missing
    groups = len(padded) // 5
    made = bytearray(4 * groups)
    for group in range(groups):
        at = 5 * group
        word = 0
        for place in range(5):
            digit = _VALUES[padded[at + place]]
            if digit >= _NO_DIGIT:
                raise BadField("the text is not Z85: it has other characters")
            word = word * 85 + digit
        if word > _WORD_MAX:
            raise BadField("the text is not Z85: a group is over four bytes")
        to = 4 * group
        made[to] = word >> 24
        made[to + 1] = (word >> 16) & 0xFF
        made[to + 2] = (word >> 8) & 0xFF
        made[to + 3] = word & 0xFF
    return bytes(made[: len(made) - missing])
