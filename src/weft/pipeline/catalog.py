"""The jobs by name: those that come with Weft."""

from importlib import import_module

from weft.pipeline.job import Job

NAMES = (
    "rates",
    "hot_routes",
    "matrix",
    "latency",
    "audit",
    "sessions",
    "compact",
    "replay",
)


def shipped() -> dict[str, Job]:
    """Every job that comes with Weft, by its name."""
    return {name: import_module(f"weft.pipeline.jobs.{name}").JOB for name in NAMES}
