"""Table that fits the window: columns without space are omitted, and named below it."""

from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

# Width that a text column needs at most; longer texts are wrapped.
_TEXT_CELLS = 24
_GAP_CELLS = 2


class FittedTable:
    """Columns and rows of texts; a column whose name ends in a space is right-aligned.

    Args:
        title: The line above the table.
        columns: The names of the columns.
        rows: A text for each column.
            spare: The columns to omit in a narrow window, the first one first.
    """

    def __init__(
        self,
        title: str,
        columns: Sequence[str],
        rows: Iterable[Sequence[str]],
        spare: Sequence[str] = (),
    ) -> None:
        self._title = title
        self._columns = columns
        self._rows = [list(row) for row in rows]
        self._spare = [columns.index(name) for name in spare]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        omitted = self._omitted(options.max_width)
        kept = [number for number in range(len(self._columns)) if number not in omitted]
        yield self._table(kept, options.max_width)
        if omitted:
            names = ", ".join(self._columns[number].strip() for number in sorted(omitted))
            yield Text(f"no room for: {names} (--json has all)", style="dim")

    def _omitted(self, room: int) -> set[int]:
        """Return the columns to omit so that the others fit, as far as possible."""
        widths = [self._width(number) + _GAP_CELLS for number in range(len(self._columns))]
        omitted: set[int] = set()
        needed = sum(widths) - _GAP_CELLS
        for number in self._spare:
            if needed <= room:
                break
            omitted.add(number)
            needed -= widths[number]
        return omitted

    def _width(self, number: int) -> int:
        """Return the cells that a column needs; a text column may be wrapped to fewer than all."""
        is_number = self._columns[number].endswith(" ")
        least = cell_len(self._columns[number].strip())
        widest = self._widest(number)
        return widest if is_number else max(least, min(widest, _TEXT_CELLS))

    def _widest(self, number: int) -> int:
        cells = [cell_len(row[number]) for row in self._rows if number < len(row)]
        return max([cell_len(self._columns[number].strip()), *cells])

    def _first_width(self, kept: Sequence[int], room: int) -> int:
        """Return the width of the first column, which identifies a row: wrapped last."""
        others = sum(self._width(number) + _GAP_CELLS for number in kept[1:])
        return min(self._widest(kept[0]), max(room - others, room * 2 // 5))

    def _table(self, kept: Sequence[int], room: int) -> Table:
        made = Table(
            title=self._title, title_justify="left", title_style="bold", box=None, pad_edge=False
        )
        for number in kept:
            name = self._columns[number]
            is_number = name.endswith(" ")
            made.add_column(
                name.strip(),
                justify="right" if is_number else "left",
                style="" if is_number else "cyan",
                header_style="dim",
                # Fold, because subjects and addresses have no spaces to wrap at.
                overflow="fold",
                no_wrap=is_number,
                width=self._first_width(kept, room) if number == kept[0] else None,
            )
        for row in self._rows:
            made.add_row(*(row[number] for number in kept if number < len(row)))
        return made


class Cropped:
    """First lines of a renderable that fit the window, and the number of the others."""

    def __init__(self, shown: RenderableType) -> None:
        self._shown = shown

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = console.render_lines(self._shown, options.update(height=None), pad=False)
        room = options.height or options.max_height
        more = len(lines) - room
        for line in lines[: room - 1] if more > 0 else lines:
            yield from line
            yield Segment.line()
        if more > 0:
            yield Text(f"… {more + 1:,} more lines: the window has only {room}", style="dim")
