"""The grammar of subjects and patterns, and how they relate.

A subject is dotted elements, `sensors.london.temp`; a pattern may hold `*` for exactly one element
and `>` for one or more, last only. Both are UTF-8 bytes, case matters, and the functions that
compare two of them take for granted that both are legal.

A first element that starts with `_` is reserved. No wildcard stands for it, so nobody hears private
inboxes by asking for everything, and a right to `>` is not a right to the system's own subjects.
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

# What every subject in a channel begins with.
CHANNEL = b"_CHANNEL."
# What jobs say about the mesh: nobody else may publish to it, and gateways listen.
PIPELINE = b"_WEFT.PIPELINE."
# Where the job `hot_routes` publishes subjects that are hot across the mesh.
HOT_ROUTES = PIPELINE + b"hot_routes"
_BEYOND = (CHANNEL, PIPELINE)

_SUBJECT_MAX_BYTES = SUBJECT_MAX_BYTES
_ELEMENT_MAX_BYTES = ELEMENT_MAX_BYTES
_ELEMENTS_MAX = ELEMENTS_MAX


def is_pattern(name: bytes) -> bool:
    """Say if these bytes are a legal pattern; every legal subject is one."""
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
    """Say if a pattern holds no wildcard, so that it is a subject."""
    return b"*" not in pattern and b">" not in pattern


def is_subject(name: bytes) -> bool:
    """Say if these bytes are a legal subject: one a message can be sent to."""
    return is_pattern(name) and is_literal(name)


def is_reserved(name: bytes) -> bool:
    """Say if a subject or pattern belongs to the system: its first element starts with `_`."""
    return len(name) > 0 and name[0] == _UNDERSCORE


def stays_here(name: bytes) -> bool:
    """Say if other gateways never hear of a subject or pattern: it is the system's own."""
    return is_reserved(name) and not name.startswith(_BEYOND)


def matches(pattern: bytes, subject: bytes) -> bool:
    """Say if a message to this subject is one that this pattern asks for."""
    return covers(pattern, subject)


def covers(wide: bytes, narrow: bytes) -> bool:
    """Say if every subject that `narrow` matches is matched by `wide` too."""
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
        # Both stand on the dot after an element, or one of them is at its end.
        if i == left_end or j == right_end:
            return i == left_end and j == right_end
        i += 1
        j += 1


def overlaps(one: bytes, other: bytes) -> bool:
    """Say if there is a subject that both patterns match."""
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
    """The subject that a path such as `/sensors/london` stands for.

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
    """The path that stands for a legal subject."""
    return "/" + subject.decode().replace(".", "/")


def checked_subject(name: str) -> bytes:
    """A subject given by a person, as the bytes the core works with.

    Raises:
        BadSubject: it is not legal, or it holds a wildcard.
    """
    subject = checked_pattern(name)
    if not is_literal(subject):
        raise BadSubject(f"subject {shortened(name)} holds a wildcard; only a pattern may")
    return subject


def checked_pattern(name: str) -> bytes:
    """A pattern given by a person, as the bytes the core works with.

    Raises:
        BadSubject: it is not legal; the text says which rule it breaks.
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
    """Say if a stretch is one wildcard, or one to 127 bytes that hold none and no forbidden one."""
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
    """The first rule that an illegal name breaks, in words."""
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
