"""Weft: a messaging mesh for Python shops."""

import weft.interpreted  # noqa: F401, I001  # must run before any compiled module is imported

from weft.core.fields import FieldType
from weft.core.messages import Field, Message
from weft.errors import WeftError

__all__ = ["Field", "FieldType", "Message", "WeftError"]
