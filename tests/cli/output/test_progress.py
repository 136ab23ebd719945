import io
import sys

import pytest

from weft.cli.output.progress import Bar


class Terminal(io.StringIO):
    """A stream that says that a person is looking."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with Bar("a [bold] title", 10) as bar:
        bar.reached(5, "12/s")
        # Drawn again only after a while, however often it is called.
        bar.reached(6, "13/s")
    shown = terminal.getvalue()
    assert "a [bold] title" in shown
    assert "12/s" in shown
    assert "13/s" not in shown


def test_a_pipe_is_spared_the_progress(capsys: pytest.CaptureFixture[str]) -> None:
    with Bar("title", None) as bar:
        bar.reached(5, "12/s")
    assert capsys.readouterr().err == ""
