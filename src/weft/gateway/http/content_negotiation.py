"""Content negotiation: accepted encodings, and entity tags of cached files."""

import re
from collections.abc import Mapping

_TAG = re.compile(r'(?:W/)?("[^"]*")')
_QUALITY = re.compile(r"q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)\Z")


def accepts_gzip(headers: Mapping[str, str]) -> bool:
    """Return whether the request accepts gzip explicitly."""
    accepted = {}
    for each in headers.get("accept-encoding", "").lower().split(","):
        name, _, parameter = each.partition(";")
        quality = _QUALITY.match(parameter.strip())
        accepted[name.strip()] = float(quality[1]) if quality else float(not parameter.strip())
    return accepted.get("gzip", accepted.get("*", 0.0)) > 0


def has_tag(headers: Mapping[str, str], tag: str) -> bool:
    """Return whether the client has a file with this entity tag; weak tags match, too."""
    had = headers.get("if-none-match", "")
    return had.strip() == "*" or tag in _TAG.findall(had)
