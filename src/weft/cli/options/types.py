"""Parameter types: finite numbers in a range."""

import math
from typing import Any

import click

# About 30 years; the longest sleep of the system is about nine times as long.
SECONDS_MAX = 1_000_000_000
RATE_MIN = 1 / SECONDS_MAX


class FiniteRange(click.FloatRange):
    """Range of finite numbers: refuses `nan` and `inf`, which float() accepts."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the typed number.

        Raises:
            click.BadParameter: Not a number, not finite, or out of range.
        """
        # Before the range check, because comparisons with NaN are false.
        number = float(click.FLOAT.convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return float(super().convert(number, param, ctx))


# Duration: positive and finite.
SECONDS = FiniteRange(min=0, min_open=True, max=SECONDS_MAX)
