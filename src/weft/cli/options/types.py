"""A number on the command line that can be waited for: in a range, and finite."""

import math
from typing import Any

import click

# More than anybody waits; a system can sleep no more than about nine times as long.
SECONDS_MAX = 1_000_000_000
RATE_MIN = 1 / SECONDS_MAX


class FiniteRange(click.FloatRange):
    """A range of numbers to which neither `nan` nor `inf` belongs, though float() reads both."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The number that was typed.

        Raises:
            click.BadParameter: it is no number, not finite, or not in the range.
        """
        # Before the range is looked at, as NaN is neither below nor above anything.
        number = float(click.FLOAT.convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return float(super().convert(number, param, ctx))


# How long to wait: some time, and not for ever.
SECONDS = FiniteRange(min=0, min_open=True, max=SECONDS_MAX)
