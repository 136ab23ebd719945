"""Tables in windows: what has no room is left out and named, never cut in the middle."""

import io

from rich.cells import cell_len
from rich.console import Console, RenderableType

from weft.cli.output.fitted_table import Cropped, FittedTable

COLUMNS = ("name", "state", "pid ", "messages ", "why")
ROW = ("weather", "running", "1234567", "12 M", "nobody else wants it")


def drawn(shown: RenderableType, width: int, height: int = 24) -> list[str]:
    text = io.StringIO()
    console = Console(file=text, width=width, height=height, force_terminal=True, color_system=None)
    console.print(shown)
    return [line.rstrip() for line in text.getvalue().splitlines()]


def test_a_wide_window_shows_every_column() -> None:
    lines = drawn(FittedTable("t", COLUMNS, [ROW], ("pid ", "state")), 80)
    assert [line.split("  ")[0] for line in lines] == ["t", "name", "weather"]
    assert lines[1].split() == ["name", "state", "pid", "messages", "why"]
    assert lines[2].split() == " ".join(ROW).split()


def test_a_narrow_window_does_without_the_spare_columns_in_their_order() -> None:
    table = FittedTable("t", COLUMNS, [ROW], ("pid ", "state"))
    lines = drawn(table, 52)
    assert lines[1].split() == ["name", "state", "messages", "why"]
    assert lines[-1] == "no room for: pid (--json has all)"
    lines = drawn(table, 43)
    assert lines[1].split() == ["name", "messages", "why"]
    assert lines[-1] == "no room for: state, pid (--json has all)"


def test_texts_are_wrapped_where_no_column_is_left_to_spare() -> None:
    subject = "sensors." + ".".join(f"place{n}" for n in range(12))
    lines = drawn(FittedTable("t", ("subject", "rate "), [(subject, "12 M/s")]), 40)
    assert max(map(cell_len, lines)) <= 40
    assert "".join(line.split()[0] for line in lines[2:]) == subject
    assert lines[2].endswith("12 M/s")


def test_a_row_may_have_fewer_texts_than_there_are_columns() -> None:
    lines = drawn(FittedTable("t", COLUMNS, [ROW, ("quotes", "starting")], ("pid ",)), 52)
    assert lines[3].split() == ["quotes", "starting"]


def test_what_is_too_high_ends_with_how_much_is_missing() -> None:
    table = FittedTable("t", ("number ",), [(str(n),) for n in range(30)])
    lines = drawn(Cropped(table), 80, 24)
    assert len(lines) == 24
    assert [lines[0], lines[-2].strip()] == ["t", "20"]
    assert lines[-1] == "… 9 more lines: the window has only 24"


def test_what_is_not_too_high_is_as_it_is() -> None:
    table = FittedTable("t", ("number ",), [(str(n),) for n in range(22)])
    assert drawn(Cropped(table), 80, 24) == drawn(table, 80, 24)
