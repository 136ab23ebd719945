"""Identity of one node's journal: a random id, written once when the journal is created.

    service=weather/
        _journal-london     {"id": "5f0c…", "next": 4711}

Positions are unique within one id. A journal that was deleted and created again under the same name
has another id, so a reader can store the id with its positions and notice. `next` is a lower bound
of the next position: it keeps the numbering even after every segment was removed.
"""

import os
import secrets
from pathlib import Path

import msgspec

from weft.journal import file_modes
from weft.journal.segment.file_names import JournalFolder
from weft.journal.segment.writer import sync_folder

_ID_BYTES = 16
_PREFIX = "_journal-"


class JournalIdentity(msgspec.Struct, frozen=True):
    """Contents of the file."""

    id: str
    next: int = 0


def identity_of(place: JournalFolder) -> JournalIdentity | None:
    """Return the identity of a journal; None if it has none, or its file is damaged.

    Raises:
        OSError: unreadable file.
    """
    try:
        found = msgspec.json.decode(_path_of(place).read_bytes(), type=JournalIdentity)
    except (FileNotFoundError, msgspec.DecodeError):
        return None
    return found if found.id else None


def ids_in(root: Path, service: str, node: str | None = None) -> dict[str, str]:
    """Return the ids of a service's journals by node, or of one node alone.

    Raises:
        OSError: unreadable file.
    """
    return {each: found.id for each, found in identities_in(root, service, node).items()}


def identities_in(root: Path, service: str, node: str | None = None) -> dict[str, JournalIdentity]:
    """Return the identities of a service's journals by node, or of one node alone.

    Raises:
        OSError: unreadable file.
    """
    folder = root / f"service={service}"
    nodes = [path.name.removeprefix(_PREFIX) for path in folder.glob(f"{_PREFIX}*")]
    chosen = [each for each in sorted(nodes) if node is None or each == node]
    found = {each: identity_of(JournalFolder(root, service, each)) for each in chosen}
    return {each: identity for each, identity in found.items() if identity is not None}


def keep_identity(place: JournalFolder, next_position: int) -> int:
    """Store the next position of a journal; create its identity if it has none.

    Return the next position: later than the given one if later segments were removed.

    Raises:
        OSError: the file cannot be read or written.
    """
    known = identity_of(place)
    position = max(next_position, known.next if known is not None else 0)
    wanted = JournalIdentity(
        known.id if known is not None else secrets.token_hex(_ID_BYTES), position
    )
    if wanted != known:
        _write(place, wanted)
    return position


def _write(place: JournalFolder, identity: JournalIdentity) -> None:
    path = _path_of(place)
    # The gateway and its maintenance process may both write: each to its own file.
    aside = path.with_name(f"_new{path.name}-{os.getpid()}")
    try:
        fd = os.open(
            aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, file_modes.JOURNAL
        )
        with os.fdopen(fd, "wb") as file:
            file.write(msgspec.json.encode(identity))
            file.flush()
            os.fsync(file.fileno())
        aside.rename(path)
    except OSError:
        aside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def _path_of(place: JournalFolder) -> Path:
    return place.folder / f"{_PREFIX}{place.node}"
