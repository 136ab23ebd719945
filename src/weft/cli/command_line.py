"""The command `weft` and its sub-commands, and how a run of it ends."""

import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any

import click

from weft import distribution
from weft.cli import failures, output
from weft.cli.admin import admin
from weft.cli.bench import bench
from weft.cli.channel import channel
from weft.cli.closest import closest
from weft.cli.completion import completion
from weft.cli.journal import journal
from weft.cli.keys import keys
from weft.cli.mesh import mesh
from weft.cli.pipeline import pipeline
from weft.cli.pub import pub
from weft.cli.reply import reply
from weft.cli.req import req
from weft.cli.routes import routes
from weft.cli.serve import serve
from weft.cli.simulate import simulate
from weft.cli.sql import sql
from weft.cli.status import status
from weft.cli.sub import sub
from weft.cli.top import top
from weft.cli.trace import trace
from weft.cli.version import version


class Commands(click.Group):
    """A group that lists its commands in the order in which a newcomer needs them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """The names of the commands, as they were added."""
        return list(self.commands)

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Read the command line, which prints the help; see invoke()."""
        try:
            return super().make_context(info_name, args, parent, **extra)
        except BrokenPipeError as error:
            output.let_nobody_read(sys.stdout)
            raise click.exceptions.Exit(failures.UNREAD) from error

    def invoke(self, ctx: click.Context) -> object:
        """Carry out the command; click itself would not tell that nobody reads from a failure."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            output.let_nobody_read(sys.stdout)
            return failures.UNREAD


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Every command explains itself: weft COMMAND --help.",
)
@click.version_option(
    distribution.installed_version(), prog_name="weft", message="%(prog)s %(version)s"
)
def weft() -> None:
    """A messaging mesh for Python shops: publish, subscribe, request, reply."""


for _command in (
    *(serve, keys, pub, sub, req, reply, channel, status, top, routes, mesh, closest, trace),
    *(admin, journal, pipeline, sql, bench, simulate, version, completion),
):
    weft.add_command(_command)


def run(arguments: Sequence[str]) -> int:
    """Carry out one command line; the exit code says how it went."""
    output.prepare()
    try:
        code = weft.main(args=arguments, prog_name="weft", standalone_mode=False)
    except click.Abort:
        return failures.INTERRUPTED
    except Exception as error:  # the last word of the program, whatever it was
        _report(error)
        return failures.exit_code_of(error)
    return code if isinstance(code, int) else 0


def _report(error: Exception) -> None:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        # No mistake, but no command either: what there is, instead of a sentence.
        output.tell(error.format_message())
        return
    if os.environ.get("WEFT_DEBUG"):
        traceback.print_exception(error)
    output.news(failures.sentence_of(error))
