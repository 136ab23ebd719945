"""`weft version`: version, build of the core, Python and system."""

import platform

import click

from weft import distribution
from weft.cli.output import streams
from weft.cli.output.message_text import to_json
from weft.wire.message import codec


@click.command()
@click.option("--json", "is_json", is_flag=True, help="Print JSON.")
def version(is_json: bool) -> None:
    """Print the version, and how the core was built."""
    core = "compiled" if codec.__file__.endswith(".so") else "interpreted"
    facts = {
        "version": distribution.installed_version(),
        "core": core,
        "python": platform.python_version(),
        "system": platform.system(),
    }
    if is_json:
        streams.json_result(to_json(facts))
        return
    streams.result(
        f"weft {facts['version']}, {core} core, Python {facts['python']}, {facts['system']}"
    )
