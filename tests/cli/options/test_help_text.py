import click
from click.testing import CliRunner

from weft.cli.options.help_text import examples


def test_examples_keep_their_lines() -> None:
    command = click.Command("x", epilog=examples("weft x 'a.>'", "weft x   b"))
    shown = CliRunner().invoke(command, ["--help"]).output
    assert shown.endswith("  Examples:\n    weft x 'a.>'\n    weft x   b\n")
