"""What the demo draws is readable in a window of 80 columns and 24 lines."""

import io
import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from examples.demo.processes import HEARD_AT, SENSORS_AT, TICKS_AT
from examples.demo.sensors import CITIES, KINDS
from examples.demo.view import View
from rich.cells import cell_len
from rich.console import Console

from weft.client.received import Received
from weft.wire import frames
from weft.wire.frames import Kind
from weft.wire.message.message import Message

COLUMNS, LINES = 80, 24
NAMES = (SENSORS_AT, *HEARD_AT)


def received(to: str, **fields: Any) -> Received:
    body = Message(**fields)
    return Received(frames.encode(Kind.MESSAGE, to.encode(), body.encode()))


@pytest.fixture
def view(tmp_path: Path) -> View:
    """The demo after a while: every sensor was heard and counted, all gateways are linked."""
    made = View({name: f"127.0.0.1:{54321 + n}" for n, name in enumerate(NAMES)}, tmp_path)
    for name, gateway in made.gateways.items():
        links = [{"name": other, "rtt_ms": 12.3} for other in NAMES if other != name]
        counts = {"sent": 12, "received": 12}
        gateway.told(received("x", links=links, counts=counts))
    for city in CITIES:
        for kind, (value, unit) in KINDS.items():
            subject = f"sensors.{city}.{kind}"
            made.saw("paris", received(subject, value=-value, unit=unit))
            start = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
            made.heard(received("r", subject=subject, start=start, messages=12_345))
    reason = "one of its receivers cannot be reached from there: no lane"
    made.lane.told(received("x", routes=[{"state": "relayed", "reason": reason}]))
    return made


def drawn(view: View) -> list[str]:
    shown = io.StringIO()
    console = Console(file=shown, width=COLUMNS, force_terminal=True, color_system=None)
    console.print(view.picture(LINES))
    return shown.getvalue().splitlines()


def test_everything_fits_and_nothing_is_cut(view: View) -> None:
    lines = drawn(view)
    assert len(lines) < LINES
    assert max(map(cell_len, lines)) <= COLUMNS
    (gateway,) = [line for line in lines if line.startswith(TICKS_AT)]
    assert "127.0.0.1:54323" in gateway
    assert "london 12.3, paris 12.3" in gateway
    (first,) = [line for line in lines if line.startswith("sensors.berlin.temp")]
    assert first.split() == [
        *("sensors.berlin.temp", "paris", "-15.0", "C", "0", "12,345", "03:04:05")
    ]
    assert "… and 8 more in a higher window" in lines


def test_the_commands_can_be_copied_as_they_stand(view: View) -> None:
    lines = drawn(view)
    for command in view.commands():
        assert f"  {command}" in lines
        program, *_ = shlex.split(command)
        assert Path(program).exists()
