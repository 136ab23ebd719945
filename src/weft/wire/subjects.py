"""Grammar of subjects and patterns, and how patterns match.

A subject consists of dotted elements, `sensors.london.temp`; in a pattern `*` stands for exactly
one element, and `>`, last only, for one or more. Both are case-sensitive UTF-8. Functions that
compare two of them expect valid arguments.

A first element that starts with `_` is reserved. No wildcard matches it, so a subscription to `>`
does not receive private inboxes, and a permission for `>` does not cover system subjects.
"""

from weft.errors import BadSubject, shortened

SUBJECT_MAX_BYTES = 255
ELEMENT_MAX_BYTES = 127
ELEMENTS_MAX = 100

_DOT = 46
_STAR = 42
_TAIL = 62
_SLASH = 47
_UNDERSCORE = 95
_DELETE = 127

# Prefix of all subjects in channels.
CHANNEL = b"_CHANNEL."
# Results of analytics jobs about the mesh: clients may not publish here, gateways subscribe.
PIPELINE = b"_WEFT.PIPELINE."
# Where the analytics job `hot_routes` publishes subjects that are hot across the mesh.
HOT_ROUTES = PIPELINE + b"hot_routes"
_BEYOND = (CHANNEL, PIPELINE)

_SUBJECT_MAX_BYTES = SUBJECT_MAX_BYTES
_ELEMENT_MAX_BYTES = ELEMENT_MAX_BYTES
_ELEMENTS_MAX = ELEMENTS_MAX


def is_pattern(name: bytes) -> bool:
    """Return whether the bytes are a valid pattern; every valid subject is one."""
    data = name
    end = len(name)
    if end == 0 or end > _SUBJECT_MAX_BYTES:
        return False
    count = 1
    start = 0
    for at in range(end):
        if data[at] == _DOT:
            if not _is_element(data, start, at):
                return False
            # Only the last element may be the tail wildcard.
            if data[start] == _TAIL:
                return False
            start = at + 1
            count += 1
    return count <= _ELEMENTS_MAX and _is_element(data, start, end) and _is_utf8(name)


def is_literal(pattern: bytes) -> bool:
    """Return whether a pattern has no wildcard, so that it is a subject."""
    return b"*" not in pattern and b">" not in pattern


def is_subject(name: bytes) -> bool:
    """Return whether the bytes are a valid subject, to which messages can be published."""
    return is_pattern(name) and is_literal(name)


def is_reserved(name: bytes) -> bool:
    """Return whether a subject or pattern is reserved: its first element starts with `_`."""
    return len(name) > 0 and name[0] == _UNDERSCORE


def stays_here(name: bytes) -> bool:
    """Return whether a subject or pattern is never announced to other gateways."""
    return is_reserved(name) and not name.startswith(_BEYOND)


def matches(pattern: bytes, subject: bytes) -> bool:
    """Return whether a pattern matches a subject."""
    return covers(pattern, subject)


def covers(wide: bytes, narrow: bytes) -> bool:
    """Return whether `wide` matches every subject that `narrow` matches."""
    left = wide
    right = narrow
    left_end = len(wide)
    right_end = len(narrow)
    if right[0] == _UNDERSCORE and (left[0] == _STAR or left[0] == _TAIL):
        return False
    i = 0
    j = 0
    while True:
        if left[i] == _TAIL:
            return True
        if right[j] == _TAIL:
            return False
        if left[i] == _STAR:
            i += 1
            j = _element_end(right, j, right_end)
        else:
            while i < left_end and left[i] != _DOT:
                if j >= right_end or left[i] != right[j]:
                    return False
                i += 1
                j += 1
            if j < right_end and right[j] != _DOT:
                return False
        # Both are at the dot after an element, or one of them is at its end.
        if i == left_end or j == right_end:
            return i == left_end and j == right_end
        i += 1
        j += 1


def overlaps(one: bytes, other: bytes) -> bool:
    """Return whether at least one subject matches both patterns."""
    left = one
    right = other
    left_end = len(one)
    right_end = len(other)
    if _is_wild_against_reserved(one, other):
        return False
    i = 0
    j = 0
    while True:
        if left[i] == _TAIL or right[j] == _TAIL:
            return True
        after_left = _element_end(left, i, left_end)
        after_right = _element_end(right, j, right_end)
        if left[i] != _STAR and right[j] != _STAR:
            if after_left - i != after_right - j:
                return False
            while i < after_left:
                if left[i] != right[j]:
                    return False
                i += 1
                j += 1
        i = after_left
        j = after_right
        if i == left_end or j == right_end:
            return i == left_end and j == right_end
        i += 1
        j += 1


def elements(name: bytes) -> list[bytes]:
    """The elements of a subject or pattern, in order."""
    return name.split(b".")


def subject_from_path(path: str) -> bytes:
    """Convert a path such as `/sensors/london` to a subject.

    Raises:
        BadSubject: the path has no leading slash, an empty element, or a dot in one.
    """
    if not path.startswith("/"):
        raise BadSubject(f"path {shortened(path)} does not start with '/'")
    if "." in path:
        raise BadSubject(
            f"path {shortened(path)} holds a '.', which separates the elements of a subject"
        )
    return checked_subject(path[1:].replace("/", "."))


def path_from_subject(subject: bytes) -> str:
    """Convert a valid subject to a path."""
    return "/" + subject.decode().replace(".", "/")


def checked_subject(name: str) -> bytes:
    """Encode a subject that a user gave.

    Raises:
        BadSubject: invalid subject, or it contains a wildcard.
    """
    subject = checked_pattern(name)
    if not is_literal(subject):
        raise BadSubject(f"subject {shortened(name)} holds a wildcard; only a pattern may")
    return subject


def checked_pattern(name: str) -> bytes:
    """Encode a pattern that a user gave.

    Raises:
        BadSubject: invalid pattern; the text names the rule that it breaks.
    """
    pattern = name.encode(errors="surrogatepass")
    if not is_pattern(pattern):
        raise BadSubject(f"{shortened(name)} is not a legal subject: {_broken_rule(pattern)}")
    return pattern


def _element_end(data: bytes, at: int, end: int) -> int:
    while at < end and data[at] != _DOT:
        at += 1
    return at


def _is_element(data: bytes, start: int, end: int) -> bool:
    """Return whether a range is one wildcard, or 1 to 127 bytes without `*`, `>`, `/`, controls."""
    if end == start or end - start > _ELEMENT_MAX_BYTES:
        return False
    for at in range(start, end):
        byte = data[at]
        if byte in (_STAR, _TAIL) and end - start > 1:
            return False
        if byte < 32 or byte in (_SLASH, _DELETE):
            return False
    return True


def _is_wild_against_reserved(one: bytes, other: bytes) -> bool:
    if one[0] == _UNDERSCORE:
        return other[0] == _STAR or other[0] == _TAIL
    return other[0] == _UNDERSCORE and (one[0] == _STAR or one[0] == _TAIL)


def _is_utf8(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


def _broken_rule(name: bytes) -> str:
    """The first rule that an invalid name breaks, as text."""
    if not name:
        return "it is empty"
    if len(name) > SUBJECT_MAX_BYTES:
        return f"{len(name)} bytes are over the limit of {SUBJECT_MAX_BYTES}"
    if not _is_utf8(name):
        return "it is not UTF-8"
    parts = elements(name)
    if len(parts) > ELEMENTS_MAX:
        return f"{len(parts)} elements are over the limit of {ELEMENTS_MAX}"
    for number, part in enumerate(parts, 1):
        if not part:
            return f"element {number} is empty"
        if len(part) > ELEMENT_MAX_BYTES:
            return f"element {number} has {len(part)} bytes, the limit is {ELEMENT_MAX_BYTES}"
        if part == b">" and number != len(parts):
            return "'>' may only be the last element"
        if len(part) > 1 and (b"*" in part or b">" in part):
            return f"element {number} mixes a wildcard with other characters"
    return "it holds a '/' or a control character"
