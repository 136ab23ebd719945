"""Start of a replay as a user writes it: a position, a time, or an age such as `5m`."""

import re
from datetime import datetime
from typing import Any

from weft.errors import BadOption, shortened

Since = int | str | datetime

_AGO = re.compile(r"(?P<count>\d{1,12}(?:\.\d{1,9})?)(?P<unit>ms|s|m|h|d)", re.ASCII)
_POSITION = re.compile(r"\d{1,18}", re.ASCII)
_UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def beginning(since: Since) -> dict[str, Any]:
    """The start of a replay as a field of a system request.

    Raises:
        BadOption: not a position, a datetime with a time zone, or an age.
    """
    if isinstance(since, datetime):
        if since.tzinfo is None:
            raise BadOption(f"since {since} has no time zone")
        return {"time": since}
    if isinstance(since, int) and not isinstance(since, bool):
        if since < 0:
            raise BadOption(f"since {since} is negative: positions begin at 0")
        return {"position": since}
    found = _AGO.fullmatch(since) if isinstance(since, str) else None
    if found is None:
        raise BadOption(
            f"since {since!r} is not a position, a datetime, or a time such as '90s', '5m' or '2h'"
        )
    return {"ago": float(found["count"]) * _UNIT_S[found["unit"]]}


def since_from(text: str) -> Since:
    """Parse a position, an age or a time: `1234`, `5m`, `2026-01-31T12:00:00Z`.

    Raises:
        BadOption: none of the three, or a time without a time zone.
    """
    if _POSITION.fullmatch(text):
        return int(text)
    if _AGO.fullmatch(text):
        return text
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise BadOption(
            f"since {shortened(text)} is not a position, a time such as '5m',"
            " or a moment such as 2026-01-31T12:00:00Z"
        ) from error
    if moment.tzinfo is None:
        raise BadOption(f"since {shortened(text)} has no time zone")
    return moment
