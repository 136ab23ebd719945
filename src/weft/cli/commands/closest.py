"""`weft closest`: the gateways that a client may connect to, with their round-trip times."""

import asyncio
import math

import click

from weft.cli import errors
from weft.cli.options.help_text import examples
from weft.cli.options.target import REGION, CommandTarget, target_options
from weft.cli.output import streams
from weft.cli.output.message_text import printable, to_json
from weft.cli.output.units import latency
from weft.cli.query_errors import place
from weft.client.connection.closest import DiscoveryQuery, RankedCandidate, ask, measure
from weft.wire.address import addresses_from

LIMIT_MAX = 100


@click.command(
    epilog=examples(
        "weft closest",
        "weft closest --region eu --limit 3",
        "weft closest --gateway paris:7411 --service weather --json",
    )
)
@REGION
@click.option(
    "--limit",
    type=click.IntRange(1, LIMIT_MAX),
    default=10,
    show_default=True,
    help="Most gateways to ask for and to measure.",
)
@target_options
def closest(target: CommandTarget, limit: int) -> int:
    """Show the gateways of a service, and how far each is.

    A gateway lists the gateways that it knows, by region and load; then each is measured from
    here. They are shown in the order in which a client tries them. Exit status 1 if there is none.
    """
    asked = addresses_from(target.gateway)[0]
    sought = DiscoveryQuery(target.service, target.region, target.key(), target.tls())

    async def survey() -> list[RankedCandidate]:
        return await measure(await ask(asked, sought, limit), sought.tls)

    found = asyncio.run(survey())
    if target.is_json:
        rows = [_facts(each) for each in found]
        streams.json_result(to_json({"service": target.service, "candidates": rows}))
    elif found:
        streams.show(
            streams.table(
                f"gateways of {printable(target.service)}",
                ("gateway", "address", "region", "load ", "round trip "),
                ([_text(each, column) for column in _COLUMNS] for each in found),
            )
        )
    if not found:
        streams.news(f"{place(asked)} knows no gateway of service {printable(target.service)!r}")
    return 0 if found else errors.FAILED


_COLUMNS = ("name", "address", "region", "load", "rtt")


def _text(found: RankedCandidate, column: str) -> str:
    if column == "rtt":
        return latency(found.rtt_s) if math.isfinite(found.rtt_s) else "no answer"
    if column == "address":
        return printable(place(found.address))
    return printable(str(getattr(found, column)))


def _facts(found: RankedCandidate) -> dict[str, object]:
    is_there = math.isfinite(found.rtt_s)
    return {
        "name": found.name,
        "address": place(found.address),
        "region": found.region,
        "load": found.load,
        "round_trip_ms": round(1e3 * found.rtt_s, 3) if is_there else None,
    }
