"""Lanes between real processes that are cut, stopped, killed and left: nothing is lost or doubled.

`make lane-faults` is the long version of this.
"""

import json
import subprocess
import sys

import pytest
from tests.faults.test_mesh import why_not

PROMOTIONS = 40
FAULTS = ("-m", "tools.lane_faults", "--json", "--promotions", str(PROMOTIONS), "--seed", "4")
LIMIT_S = 150


@pytest.mark.req("HUB-15")
@pytest.mark.req("HUB-20")
@pytest.mark.req("HUB-22")
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
def test_whatever_becomes_of_lanes_every_message_comes_once_and_in_order(place: str) -> None:
    done = subprocess.run(  # noqa: S603  # our own command
        (sys.executable, *FAULTS, "--place", place, "--seconds", "90"),
        check=False,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["promotions"] >= PROMOTIONS
    assert sum(figures["demotions"].values()) > 0
    assert figures["delivered_by_lanes"] > 0
    assert [figures[name] for name in ("doubled", "misordered", "silently_lost")] == [0] * 3
