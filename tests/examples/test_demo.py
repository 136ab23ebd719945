"""The demo, as `make demo` runs it: from sensors through a journal and Spark back to the mesh."""

import re
import subprocess
import sys


def test_the_demo_shows_what_spark_has_counted_and_a_route_that_goes_direct() -> None:
    done = subprocess.run(  # ours
        [sys.executable, "-m", "examples.demo", "--results", "1"],
        capture_output=True,
        text=True,
        timeout=450,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    last = lines[-1]
    assert "(running)" in last
    assert "1 open" in last
    assert last.startswith("3 gateways linked, ")
    crossed = re.search(r" ([\d,]+) messages crossed", last)
    assert crossed is not None
    assert int(crossed[1].replace(",", "")) > 0
    assert "ticks.eur at rome: relayed (" in lines[0]
    assert "ticks.eur at rome: direct (" in last
    assert " 0/s relayed, " in last
