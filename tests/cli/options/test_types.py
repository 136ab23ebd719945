import subprocess
from collections.abc import Callable

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]

OPTIONS = [
    ["pub", "a", "x", "--rate"],
    ["req", "a", "x", "--timeout"],
    ["req", "a", "x", "--many", "--quiet"],
    ["reply", "a", "x", "--timeout"],
    ["top", "--interval"],
    ["bench", "--seconds"],
]


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e999"])
@pytest.mark.parametrize("arguments", OPTIONS, ids=" ".join)
def test_what_is_not_finite_is_a_mistake(run_here: Run, arguments: list[str], value: str) -> None:
    done = run_here(*arguments, value)
    assert f"{value} is not a finite number; see 'weft {arguments[0]} --help'" in done.stderr
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


@pytest.mark.parametrize("arguments", OPTIONS, ids=" ".join)
def test_what_nobody_can_wait_for_is_a_mistake(run_here: Run, arguments: list[str]) -> None:
    value = "1e-300" if arguments[0] == "pub" else "1e300"
    done = run_here(*arguments, value)
    assert f"{float(value)} is not in the range " in done.stderr
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


@pytest.mark.parametrize("arguments", OPTIONS, ids=" ".join)
def test_what_is_no_number_is_a_mistake(run_here: Run, arguments: list[str]) -> None:
    done = run_here(*arguments, "soon")
    assert "'soon' is not a valid float" in done.stderr
    assert done.returncode == 2
