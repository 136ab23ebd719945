"""What one sees: the gateways, every subject live and as counted, and how the journal grows."""

from collections import Counter
from datetime import datetime
from pathlib import Path

from examples.demo.gateway_view import GatewayView
from examples.demo.lane_view import LaneView
from examples.demo.processes import HEARD_AT, RESULTS, SENSORS_AT, TICKS_AT, WINDOW_S
from examples.demo.ticker import TICKS
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table

import weft
from weft.journal.places import FOLDER, segments_of

_EVERY_S = 1.0


class View:
    """Everything that is known at the moment."""

    def __init__(self, addresses: dict[str, str], data: Path) -> None:
        self.gateways = {name: GatewayView(name, each) for name, each in addresses.items()}
        self.lane = LaneView(TICKS_AT)
        self._root = data / FOLDER
        self._counts: Counter[str] = Counter()
        self._rates: dict[str, float] = {}
        self._values: dict[str, str] = {}
        self._heard_at: dict[str, str] = {}
        # Of every subject the newest window, and how many messages were in it.
        self._windows: dict[str, tuple[datetime, int]] = {}
        self.results = 0
        self.note = "Spark is starting"

    def saw(self, name: str, message: weft.Received) -> None:
        """A reading came, live, to a subscriber at a gateway."""
        self.gateways[name].heard += 1
        self._heard_at[message.subject] = name
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
        self.lane.tick()

    def line(self) -> str:
        """All of it in one line."""
        live = sum(self._rates.values())
        linked = sum(each.is_linked for each in self.gateways.values())
        crossed = sum(each.received for each in self.gateways.values())
        return (
            f"{linked} gateways linked, {crossed:,} messages crossed, {live:.0f}/s heard,"
            f" journal: {self._kept()}, rates from Spark: {self.results} ({self.note}),"
            f" {self.lane.line()}"
        )

    def picture(self) -> RenderableType:
        """All of it as a picture."""
        *_, last = self.gateways.values()
        ticks = self.gateways[TICKS_AT]
        try_it = f"weft sub 'sensors.>' --service weather --gateway {last.address}"
        heard = f"sensors → {SENSORS_AT} → {', '.join(HEARD_AT)}"
        flow = (
            f"{heard}; journal → Spark → {SENSORS_AT}; ticker → {TICKS_AT} → desk, and then past it"
        )
        return Group(
            Panel(flow, title="Weft"),
            self._mesh(),
            self._subjects(),
            f"journal   {self._kept()}",
            f"lane      {self.lane.line()}",
            f"Spark     {self.note}, {self.results:,} results on {RESULTS}",
            f"try it    {try_it}",
            f"          weft mesh --service weather --gateway {last.address}",
            f"          weft routes {TICKS} --service weather --gateway {ticks.address}",
            "^C ends it",
        )

    def _mesh(self) -> Table:
        table = Table(expand=True)
        for name in ("gateway", "address", "linked with"):
            table.add_column(name)
        for name in ("to others /s", "from others /s", "heard there /s"):
            table.add_column(name, justify="right")
        for each in self.gateways.values():
            table.add_row(*each.row())
        return table

    def _subjects(self) -> Table:
        table = Table(expand=True)
        table.add_column("subject")
        table.add_column("heard at")
        for name in ("now", "live /s", f"Spark: messages in {WINDOW_S} s", "window"):
            table.add_column(name, justify="right")
        for subject in sorted(self._values):
            start, messages = self._windows.get(subject, (None, None))
            table.add_row(
                subject,
                self._heard_at[subject],
                self._values[subject],
                f"{self._rates.get(subject, 0.0):.0f}",
                "" if messages is None else f"{messages:,}",
                "" if start is None else f"{start:%H:%M:%S}",
            )
        return table

    def _kept(self) -> str:
        states = Counter(each.state for each in segments_of(self._root, "weather"))
        return ", ".join(f"{states[state]} {state}" for state in ("open", "full", "sealed"))
