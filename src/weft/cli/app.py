"""The command `weft`, its sub-commands, and its exit status."""

import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any

import click

from weft import distribution
from weft.cli import errors
from weft.cli.lazy_group import LazyGroup
from weft.cli.output import streams

# In the order in which a new user needs them.
SUMMARIES = {
    "serve": "Run a gateway until ^C or SIGTERM, which drain it.",
    "keys": "Create, list, revoke and rotate the keys of a gateway.",
    "pub": "Publish a message, or every line of standard input.",
    "sub": "Show the messages of one or more PATTERNs as they come.",
    "req": "Send a request to a SUBJECT and print the answer.",
    "reply": "Answer the requests that match a PATTERN, until ^C.",
    "channel": "Open, join and list channels: subjects with members.",
    "status": "Show a gateway, its services and connections.",
    "top": "Show the current traffic of a service.",
    "routes": "Show which routes are direct, and why others are not.",
    "mesh": "Show the gateways of a mesh and their links.",
    "closest": "Show the gateways of a service, and how far each is.",
    "trace": "Show where a message to a SUBJECT would go.",
    "admin": "Send an administrator's command to gateways of a mesh.",
    "journal": "Inspect, verify and export a journal.",
    "pipeline": "Run jobs over the journal: rates, latency, an audit, your own.",
    "sql": "Run a QUERY of Spark SQL; each service is a table.",
    "bench": "Measure throughput and latency through a gateway.",
    "simulate": "Inject faults into simulated meshes, and check guarantees.",
    "version": "Print the version, and how the core was built.",
    "completion": "Print the completion script of a SHELL.",
}


class Commands(LazyGroup):
    """The commands of `weft`; handles a closed standard output."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Parse the command line, which may print the help; see invoke()."""
        try:
            return super().make_context(info_name, args, parent, **extra)
        except BrokenPipeError as error:
            streams.let_nobody_read(sys.stdout)
            raise click.exceptions.Exit(errors.UNREAD) from error

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; click itself would report a closed standard output as a failure."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            streams.let_nobody_read(sys.stdout)
            return errors.UNREAD


@click.group(
    cls=Commands,
    package="weft.cli.commands",
    summaries=SUMMARIES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Help of a command: weft COMMAND --help.",
)
@click.version_option(
    package_name=distribution.NAME, prog_name="weft", message="%(prog)s %(version)s"
)
def weft() -> None:
    """A messaging mesh for Python shops: publish, subscribe, request, reply."""


def run(arguments: Sequence[str]) -> int:
    """Run one command line; return the exit status."""
    streams.prepare()
    try:
        code = weft.main(args=arguments, prog_name="weft", standalone_mode=False)
    except click.Abort:
        return errors.INTERRUPTED
    except Exception as error:  # every error becomes a sentence and an exit status
        _report(error)
        return errors.exit_code_of(error)
    return code if isinstance(code, int) else 0


def _report(error: Exception) -> None:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        # Not an error: print the help in place of a sentence.
        streams.tell(error.format_message())
        return
    if os.environ.get("WEFT_DEBUG"):
        traceback.print_exception(error)
    streams.news(errors.sentence_of(error))
