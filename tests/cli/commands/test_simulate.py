import json
import subprocess
from collections.abc import Callable

import pytest

from weft.cli.commands import simulate as command
from weft.cli.commit import commit
from weft.simulation.checker import LOST, Verdict
from weft.simulation.scenario import RunOutcome, ScenarioOptions

Run = Callable[..., subprocess.CompletedProcess[str]]


def test_runs_are_summed_up(run_here: Run) -> None:
    done = run_here("simulate", "--seeds", "2", "--nodes", "3", "--jobs", "1")
    assert (done.returncode, done.stderr) == (0, "")
    rows = dict(line.strip().rsplit("  ", 1) for line in done.stdout.splitlines() if "  " in line)
    values = {name.strip(): value.strip() for name, value in rows.items()}
    assert values["runs"] == "2"
    assert values[LOST] == "0"


def test_json_has_exact_numbers(run_here: Run) -> None:
    done = run_here("simulate", "--seed", "1", "--nodes", "3", "--faults", "flap", "--json")
    facts = json.loads(done.stdout)
    assert facts["runs"] == 1
    assert facts["published"] > 0
    assert (facts["violations"], facts["failures"]) == ({}, [])


def test_a_trace_is_shown_beside_the_result(run_here: Run) -> None:
    done = run_here("simulate", "--seed", "1", "--nodes", "3", "--faults", "kill", "--trace")
    assert done.returncode == 0
    assert "g1 starts as 10001" in done.stderr


def test_a_run_that_fails_says_how_to_have_it_again(
    run_here: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdict = Verdict()
    verdict.find(LOST, "p 1 of 1 to s at 2")

    def fail(seeds: range, _manner: ScenarioOptions, _jobs: int) -> list[RunOutcome]:
        return [RunOutcome(seed, verdict, ("flap",), 3, 0) for seed in seeds]

    monkeypatch.setattr(command, "run_all", fail)
    done = run_here("simulate", "--seeds", "1", "--faults", "flap", "--nodes", "3")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert f"seed=0 commit={commit()} nodes=3 faults=flap" in lines
    assert "  lost silently: p 1 of 1 to s at 2" in lines


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--faults", "flop"), "'flop' is none of flap"),
        (("--trace",), "needs --seed"),
        (("--trace", "--channels"), "needs --seed"),
        (("--channels", "--nodes", "3"), "has its own gateways and faults"),
        (("--nodes", "1"), "1 is not in 2 … 1000"),
        (("--nodes", "-2"), "-2 is not in 2 … 1000"),
    ],
)
def test_a_wrong_command_line_is_one_sentence(
    run_here: Run, arguments: tuple[str, ...], said: str
) -> None:
    done = run_here("simulate", *arguments)
    assert done.returncode == 2
    assert said in done.stderr


def test_scale_is_a_table(run_here: Run) -> None:
    done = run_here("simulate", "--scale", "--nodes", "4")
    assert done.returncode == 0
    heading, row = done.stdout.splitlines()
    assert "diameter" in heading
    assert row.split()[:5] == ["4", "3.0", "1", "1.00", "1.00"]
