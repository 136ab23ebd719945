"""`weft bench`: throughput and latency through a gateway, as a Python client sees them."""

from collections.abc import Callable, Coroutine
from typing import Any

import click
import msgspec
import uvloop

from weft.cli.bench.measure import (
    RoundTrips,
    Tell,
    Throughput,
    measure_requests,
    measure_throughput,
)
from weft.cli.bench.plan import BenchPlan, window_for
from weft.cli.options.help_text import examples
from weft.cli.options.target import CommandTarget, target_options
from weft.cli.options.types import SECONDS_MAX, FiniteRange
from weft.cli.output import streams
from weft.cli.output.message_text import to_json
from weft.cli.output.progress import Bar
from weft.cli.output.units import latency, rate, short

Result = Throughput | RoundTrips
Measure = Callable[[Tell], Coroutine[Any, Any, Result]]


class BenchOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the command."""

    size: int
    fan_out: int
    seconds: float
    window: int | None
    only: str | None


@click.command(
    epilog=examples(
        "weft bench",
        "weft bench --size 1024 --fan-out 100 --seconds 5",
        "weft bench --only request --json",
    )
)
@click.option(
    "--size",
    type=click.IntRange(min=0),
    default=100,
    show_default=True,
    metavar="BYTES",
    help="The size of a message's body.",
)
@click.option(
    "--fan-out",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    metavar="N",
    help="Number of subscribers in the second measurement.",
)
@click.option(
    "--seconds",
    type=FiniteRange(min=0.1, max=SECONDS_MAX),
    default=3.0,
    show_default=True,
    metavar="S",
    help="Duration of each measurement.",
)
@click.option(
    "--window",
    type=click.IntRange(min=1),
    metavar="N",
    help="Most messages in flight to the slowest subscriber (default: one megabyte of them).",
)
@click.option(
    "--only",
    type=click.Choice(["one", "fan-out", "request"]),
    help="Take one measurement instead of all three.",
)
@target_options
def bench(target: CommandTarget, **options: Any) -> None:
    """Measure throughput and latency through a gateway.

    Three measurements: one publisher to one subscriber, one publisher to many, and sequential
    requests. The subscribers run in processes of their own. No message is lost: the publisher
    waits for its slowest subscriber.
    """
    manner = BenchOptions(**options)
    plan = BenchPlan(
        gateway=target.gateway,
        service=target.service,
        tls_ca=target.tls_ca,
        key_file=target.key_file,
        size=manner.size,
        seconds=manner.seconds,
        window=manner.window or window_for(manner.size),
    )
    results = {}
    for name, (title, measure) in _measures(plan, manner).items():
        if manner.only in (None, name):
            with Bar(title, manner.seconds) as bar:
                results[name] = uvloop.run(measure(bar.reached))
            if not target.is_json:
                streams.result(_line(title, results[name]))
    if target.is_json:
        streams.json_result(to_json({name: _facts(result) for name, result in results.items()}))


def _measures(plan: BenchPlan, manner: BenchOptions) -> dict[str, tuple[str, Measure]]:
    return {
        "one": ("one to one", lambda tell: measure_throughput(plan, 1, tell)),
        "fan-out": (
            f"one to {manner.fan_out}",
            lambda tell: measure_throughput(plan, manner.fan_out, tell),
        ),
        "request": ("request and reply", lambda tell: measure_requests(plan, tell)),
    }


def _line(title: str, result: Result) -> str:
    title = f"{title:<18}"
    size = short(result.size, "B")
    if isinstance(result, RoundTrips):
        return (
            f"{title} {rate(result.requests / result.seconds)} requests of {size},"
            f" p50 {latency(result.p50_s)}, p99 {latency(result.p99_s)},"
            f" p99.9 {latency(result.p999_s)}, longest {latency(result.max_s)}"
        )
    received = rate(result.delivery_rate * result.size, "B")
    if result.readers == 1:
        return f"{title} {rate(result.message_rate)} messages of {size}, {received}"
    return (
        f"{title} {rate(result.message_rate)} messages of {size},"
        f" {rate(result.delivery_rate)} deliveries, {received}"
    )


def _facts(result: Result) -> dict[str, Any]:
    facts: dict[str, Any] = msgspec.to_builtins(result)
    if isinstance(result, Throughput):
        facts["messages_per_s"] = result.message_rate
        facts["deliveries_per_s"] = result.delivery_rate
        facts["bytes_per_s"] = result.delivery_rate * result.size
    else:
        facts["requests_per_s"] = result.requests / result.seconds
    return facts
