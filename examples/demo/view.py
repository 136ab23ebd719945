"""What one sees: every subject live and as the job counted it, and how the journal grows."""

from collections import Counter
from datetime import datetime
from pathlib import Path

from examples.demo.processes import WINDOW_S
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table

import weft
from weft.journal.places import FOLDER, segments_of

_EVERY_S = 1.0


class View:
    """Everything that is known at the moment."""

    def __init__(self, address: str, data: Path) -> None:
        self._address = address
        self._root = data / FOLDER
        self._counts: Counter[str] = Counter()
        self._rates: dict[str, float] = {}
        self._values: dict[str, str] = {}
        # Of every subject the newest window, and how many messages were in it.
        self._windows: dict[str, tuple[datetime, int]] = {}
        self.results = 0
        self.note = "Spark is starting"

    def saw(self, message: weft.Received) -> None:
        """A reading came, live."""
        self._counts[message.subject] += 1
        self._values[message.subject] = f"{message['value']:.1f} {message['unit']}"

    def heard(self, result: weft.Received) -> None:
        """The job has counted a window."""
        self.results += 1
        self.note = "running"
        start = result["start"]
        before = self._windows.get(result["subject"])
        if before is None or start >= before[0]:
            self._windows[result["subject"]] = (start, result["messages"])

    def tick(self) -> None:
        """A second has passed."""
        self._rates = {subject: count / _EVERY_S for subject, count in self._counts.items()}
        self._counts.clear()

    def line(self) -> str:
        """All of it in one line."""
        live = sum(self._rates.values())
        return (
            f"{live:6.0f} messages/s live, journal: {self._kept()}, rates from Spark:"
            f" {self.results} ({self.note})"
        )

    def picture(self) -> RenderableType:
        """All of it as a picture."""
        table = Table(expand=True)
        for name in ("subject", "now", "live /s", f"Spark: messages in {WINDOW_S} s", "window"):
            table.add_column(name, justify="left" if name == "subject" else "right")
        for subject in sorted(self._values):
            start, messages = self._windows.get(subject, (None, None))
            table.add_row(
                subject,
                self._values[subject],
                f"{self._rates.get(subject, 0.0):.0f}",
                "" if messages is None else f"{messages:,}",
                "" if start is None else f"{start:%H:%M:%S}",
            )
        try_it = f"weft sub 'sensors.>' --service weather --gateway {self._address}"
        return Group(
            Panel(f"sensors → gateway {self._address} → journal → Spark → gateway", title="Weft"),
            table,
            f"journal   {self._kept()}",
            f"Spark     {self.note}, {self.results:,} results on _WEFT.PIPELINE.rates",
            f"try it    {try_it}",
            "^C ends it",
        )

    def _kept(self) -> str:
        states = Counter(each.state for each in segments_of(self._root, "weather"))
        return ", ".join(f"{states[state]} {state}" for state in ("open", "full", "sealed"))
