"""Catalog of the jobs that are shipped with Weft, by name."""

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
    """Return every shipped job by its name."""
    return {name: import_module(f"weft.pipeline.jobs.{name}").JOB for name in NAMES}
