import json
import subprocess
from collections.abc import Callable

import pytest

from weft.cli import channel_races as command
from weft.cli.commit import commit
from weft.simulation.channel_races.history import LEAK, RaceOutcome

Run = Callable[..., subprocess.CompletedProcess[str]]


def test_races_are_summed_up(run_here: Run) -> None:
    done = run_here("simulate", "--channels", "--seeds", "2", "--jobs", "1")
    assert (done.returncode, done.stderr) == (0, "")
    rows = [line.rsplit("  ", 1) for line in done.stdout.splitlines() if "  " in line]
    values = {name.strip(): value.strip() for name, value in rows}
    assert (values["runs"], values[LEAK]) == ("2", "0")


def test_json_has_exact_numbers(run_here: Run) -> None:
    facts = json.loads(run_here("simulate", "--channels", "--seed", "1", "--json").stdout)
    assert (facts["runs"], facts["violations"], facts["failures"]) == (1, {}, [])
    assert facts["attempts"] > 0


def test_a_trace_is_shown_beside_the_result(run_here: Run) -> None:
    done = run_here("simulate", "--channels", "--seed", "1", "--trace")
    assert done.returncode == 0
    assert "g1 starts as 10001" in done.stderr


def test_a_run_that_fails_says_how_to_have_it_again(
    run_here: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(seeds: range, _jobs: int) -> list[RaceOutcome]:
        return [RaceOutcome(seed, violations={LEAK: 1}, told=[f"{LEAK}: x"]) for seed in seeds]

    monkeypatch.setattr(command, "run_races", fail)
    done = run_here("simulate", "--channels", "--seeds", "1")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert f"seed=0 commit={commit()} channels" in lines
    assert f"  {LEAK}: x" in lines
