import io
import json
import os
import subprocess
import sys

import click
import pytest

from weft.cli.output import streams


class Terminal(io.StringIO):
    """A stream that says that a person is looking."""

    def isatty(self) -> bool:
        return True


def at_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Standard output as a terminal; within a test, as pytest sets it anew for each."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return stream


def test_results_and_news_go_to_different_streams(capsys: pytest.CaptureFixture[str]) -> None:
    streams.result("wanted")
    streams.news("by the way")
    shown = capsys.readouterr()
    assert shown.out == "wanted\n"
    assert shown.err == "weft: by the way\n"


def test_a_pipe_gets_no_colours() -> None:
    assert streams.style("text", color="cyan") == "text"


def test_a_terminal_gets_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = at_terminal(monkeypatch)
    assert streams.style("text", color="cyan") == "\x1b[36mtext\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert streams.style("text", color="cyan") == "text"
    assert terminal.getvalue() == ""


def test_a_dumb_terminal_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = at_terminal(monkeypatch)
    monkeypatch.setenv("TERM", "dumb")
    assert not streams.is_terminal(terminal)


def test_a_table_in_a_pipe_is_neither_cut_nor_wrapped(capsys: pytest.CaptureFixture[str]) -> None:
    long = "x" * 500
    streams.show(streams.table("things", ("name", "count "), [(long, "7"), ("[bold]y", "12")]))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "things"
    assert lines[1].split() == ["name", "count"]
    assert lines[2].split() == [long, "7"]
    # Names of others are shown as they are: they are no markup.
    assert lines[3].split() == ["[bold]y", "12"]
    assert lines[2].index("7") == lines[3].index("12") + 1
    assert all(line == line.rstrip() for line in lines)


def test_a_table_on_a_terminal_fits_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = at_terminal(monkeypatch)
    streams.show(streams.table("things", ("name", "count "), [("x" * 500, "7")]))
    plain = [colourless(line) for line in terminal.getvalue().splitlines()]
    assert max(map(len, plain)) <= 60
    assert "\x1b[" in terminal.getvalue()


def colourless(text: str) -> str:
    """The text without its colours."""
    return click.unstyle(text)


def test_any_character_can_be_printed() -> None:
    read, write = os.pipe()
    with os.fdopen(write, "w", encoding="ascii") as stream, os.fdopen(read, "rb") as reader:
        saved, sys.stdout = sys.stdout, stream
        try:
            streams.prepare()
            streams.result("21 °C")
        finally:
            sys.stdout = saved
        assert reader.readline() == b"21 \\xb0C\n"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-16", "utf-8"])
def test_json_is_utf_8_wherever_it_goes(gateway: str, encoding: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "weft.cli", "pub", "tests.zürich", "x", "--json"],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONIOENCODING": encoding, "WEFT_GATEWAY": gateway},
    )
    assert json.loads(done.stdout.decode())["subject"] == "tests.zürich"


def test_json_has_no_character_that_controls_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = "a\x1b[2J\x7f\x85\x9b2J\u2028\u202eb é"
    streams.json_result(json.dumps({"text": hostile}, ensure_ascii=False))
    line = capsys.readouterr().out
    assert line.endswith("\n")
    assert line.removesuffix("\n").isprintable()
    assert "é" in line
    assert json.loads(line) == {"text": hostile}
