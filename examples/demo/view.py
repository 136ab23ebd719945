"""Display of the demo: gateways, live and counted subjects, and the growth of the journal."""

from collections import Counter
from datetime import datetime
from pathlib import Path

from examples.demo.gateway_view import GatewayView
from examples.demo.lane_view import LaneView
from examples.demo.processes import HEARD_AT, RESULTS, SENSORS_AT, TICKS_AT, WINDOW_S
from examples.demo.ticker import TICKS
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

import weft
from weft.cli.commands.serve import command_name
from weft.journal.segment.file_names import FOLDER, segments_of

_EVERY_S = 1.0
# For 80 columns, where the line about the lane takes two, and a window keeps one for the cursor.
_LINES_BESIDE_SUBJECTS = 18


class View:
    """Current state of the demo."""

    def __init__(self, addresses: dict[str, str], data: Path) -> None:
        self.gateways = {name: GatewayView(name, each) for name, each in addresses.items()}
        self.lane = LaneView(TICKS_AT)
        self._root = data / FOLDER
        self._counts: Counter[str] = Counter()
        self._rates: dict[str, float] = {}
        self._values: dict[str, str] = {}
        self._heard_at: dict[str, str] = {}
        # Newest window of every subject, and the number of its messages.
        self._windows: dict[str, tuple[datetime, int]] = {}
        self.results = 0
        self.note = "Spark is starting"

    def saw(self, name: str, message: weft.Received) -> None:
        """Record a live reading, received by a subscriber at a gateway."""
        self.gateways[name].heard += 1
        self._heard_at[message.subject] = name
        self._counts[message.subject] += 1
        self._values[message.subject] = f"{message['value']:.1f} {message['unit']}"

    def heard(self, result: weft.Received) -> None:
        """Record a window counted by the job."""
        self.results += 1
        self.note = "running"
        start = result["start"]
        before = self._windows.get(result["subject"])
        if before is None or start >= before[0]:
            self._windows[result["subject"]] = (start, result["messages"])

    def tick(self) -> None:
        """Compute the rates of the last second."""
        self._rates = {subject: count / _EVERY_S for subject, count in self._counts.items()}
        self._counts.clear()
        self.lane.tick()

    def line(self) -> str:
        """Return the state as one line."""
        live = sum(self._rates.values())
        linked = sum(each.is_linked for each in self.gateways.values())
        crossed = sum(each.received for each in self.gateways.values())
        return (
            f"{linked} gateways linked, {crossed:,} messages crossed, {live:.0f}/s heard,"
            f" journal: {self._kept()}, rates from Spark: {self.results} ({self.note}),"
            f" {self.lane.line()}"
        )

    def picture(self, lines: int) -> RenderableType:
        """Return the state for a window of at least 80 columns, and of this many lines."""
        heard = f"sensors → {SENSORS_AT} → {', '.join(HEARD_AT)}"
        return Group(
            f"{heard}; journal → Spark → {SENSORS_AT}",
            f"ticker → {TICKS_AT} → desk, and then past it",
            self._mesh(),
            *self._subjects(max(1, lines - _LINES_BESIDE_SUBJECTS)),
            f"journal  {self._kept()}",
            f"lane     {self.lane.line()}",
            f"Spark    {self.note}, {self.results:,} results on {RESULTS}",
            "^C ends it; in another terminal, in this folder:",
            *(Text(f"  {command}") for command in self.commands()),
        )

    def commands(self) -> list[str]:
        """Return commands to try in another terminal."""
        weft_command = command_name()
        *_, last = self.gateways.values()
        ticks = self.gateways[TICKS_AT]
        return [
            f"{weft_command} sub 'sensors.>' --service weather --gateway {last.address}",
            f"{weft_command} mesh --service weather --gateway {last.address}",
            f"{weft_command} routes {TICKS} --service weather --gateway {ticks.address}",
        ]

    def _mesh(self) -> Table:
        table = Table(box=None, pad_edge=False)
        for name in ("gateway", "address", "linked with, ms"):
            table.add_column(name, style="cyan")
        for name in ("sent/s", "received/s", "heard/s"):
            table.add_column(name, justify="right")
        for each in self.gateways.values():
            table.add_row(*each.row())
        return table

    def _subjects(self, rows: int) -> list[RenderableType]:
        table = Table(box=None, pad_edge=False)
        for name in ("subject", "heard at"):
            table.add_column(name, style="cyan")
        for name in ("now", "live/s", f"Spark: in {WINDOW_S} s", "window"):
            table.add_column(name, justify="right")
        subjects = sorted(self._values)
        for subject in subjects[:rows]:
            start, messages = self._windows.get(subject, (None, None))
            table.add_row(
                subject,
                self._heard_at[subject],
                self._values[subject],
                f"{self._rates.get(subject, 0.0):.0f}",
                "" if messages is None else f"{messages:,}",
                "" if start is None else f"{start:%H:%M:%S}",
            )
        more = len(subjects) - rows
        return [table, f"… and {more} more in a higher window"] if more > 0 else [table]

    def _kept(self) -> str:
        states = Counter(each.state for each in segments_of(self._root, "weather"))
        return ", ".join(f"{states[state]} {state}" for state in ("open", "full", "sealed"))
