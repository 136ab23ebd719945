"""Five gateways in processes of their own, whose links and processes are broken under load."""

import json
import subprocess
import sys
from typing import Any

import pytest
from tools.chaos.namespaces import NotPossible, check_possible

# Every kind of fault, and a gateway that is killed; few links, so that others have to pass on.
CHAOS = ("-m", "tools.chaos", "--json", "--seconds", "8", "--seed", "1", "--max-links", "2")
LIMIT_S = 120


def why_not() -> str:
    """Why there can be no namespaces here; empty if there can."""
    try:
        check_possible()
    except NotPossible as error:
        return str(error)
    return ""


def chaos(place: str) -> dict[str, Any]:
    """The figures of a run, which must have found nothing wrong."""
    done = subprocess.run(  # noqa: S603  # our own command
        (sys.executable, *CHAOS, "--place", place),
        check=False,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stderr
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


@pytest.mark.parametrize(
    "place",
    [
        "loopback",
        pytest.param(
            "namespaces",
            marks=[
                pytest.mark.namespaces,
                pytest.mark.skipif(bool(why_not()), reason=f"no namespaces: {why_not()}"),
            ],
        ),
    ],
)
def test_a_mesh_that_is_broken_loses_nothing_silently(place: str) -> None:
    figures = chaos(place)
    assert figures["faults"]["kill"] > 0
    assert figures["delivered"] > figures["sent"] > 1000
    assert figures["recovery"]["pairs"] > 0
    found = ("silently_lost", "doubled", "misordered", "group_lost", "unanswered")
    assert [figures[name] for name in found] == [0] * 5
