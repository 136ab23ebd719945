"""Group of commands that imports only the one that runs."""

import importlib
from collections.abc import Mapping
from typing import Any

import click

from weft.cli.interrupts import quiet_interrupt


class LazyGroup(click.Group):
    """Lists its commands from a table, and imports each when it is first used.

    Args:
        package: The package of the commands; each is the attribute of its module's own name.
        summaries: For each command, in the order of the help, its first sentence.
        attrs: Everything else that a click group takes.
    """

    def __init__(self, *, package: str, summaries: Mapping[str, str], **attrs: Any) -> None:
        super().__init__(**attrs)
        self._package = package
        self._deferred = set(summaries)
        for name, summary in summaries.items():
            self.add_command(click.Command(name, short_help=summary))

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """Return the names of the commands in the order of the table."""
        return list(self.commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, imported; None if there is none of this name."""
        if cmd_name in self._deferred:
            with quiet_interrupt():
                module = importlib.import_module(f"{self._package}.{cmd_name}")
            self.commands[cmd_name] = getattr(module, cmd_name)
            self._deferred.remove(cmd_name)
        return super().get_command(ctx, cmd_name)

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002  # click's signature
        formatter: click.HelpFormatter,
    ) -> None:
        """Write the table of commands without importing any."""
        limit = formatter.width - 6 - max(map(len, self.commands))
        rows = [(name, each.get_short_help_str(limit)) for name, each in self.commands.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
