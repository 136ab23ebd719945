"""Templates with placeholders, such as `id: %(id)s`; a percent sign is written `%%`."""

import re
from collections.abc import Collection

from weft.errors import BadOption, shortened

TEXT_MAX = 4096

_PLACE = re.compile(r"%(?:\((?P<name>\w*)\)s|(?P<percent>%)|\(\w*\)?.?|.?)", re.DOTALL)


class Template:
    """Text that is parsed once; `names` are its placeholders in order."""

    __slots__ = ("_first", "_rest", "names")

    def __init__(self, text: str, places: Collection[str]) -> None:
        """Parse a template.

        Raises:
            BadOption: over TEXT_MAX characters, an unknown placeholder or a lone percent sign.
        """
        if len(text) > TEXT_MAX:
            raise BadOption(f"{len(text)} characters are over the limit of {TEXT_MAX}")
        literals = [""]
        names: list[str] = []
        at = 0
        for found in _PLACE.finditer(text):
            literals[-1] += text[at : found.start()]
            at = found.end()
            if found["percent"]:
                literals[-1] += "%"
            elif found["name"] in places:
                names.append(found["name"])
                literals.append("")
            else:
                raise BadOption(
                    f"{shortened(found[0])} cannot stand here:"
                    f" there are {', '.join(f'%({name})s' for name in places)}, and %%"
                )
        literals[-1] += text[at:]
        try:
            self._first, *rest = (literal.encode() for literal in literals)
        except UnicodeEncodeError as error:
            raise BadOption(f"not Unicode text: {error.reason}") from error
        self.names = tuple(names)
        self._rest = tuple(zip(self.names, rest, strict=True))

    def filled(self, **values: bytes) -> bytes:
        """Return the text with values in place of the placeholders."""
        parts = [self._first]
        for name, literal in self._rest:
            parts.append(values[name])
            parts.append(literal)
        return b"".join(parts)
