"""A run can be had again, exactly, wherever it is done."""

import subprocess
import sys

import msgspec

from weft.simulation.history import DeliveryRecord, RequestRecord
from weft.simulation.scenario import Scenario, ScenarioOptions, run

# Names are hashed otherwise in each process: nothing may depend on the order of a set of them.
ELSEWHERE = """
import hashlib, msgspec
from weft.simulation.scenario import ScenarioOptions, Scenario
for seed in range(6):
    scenario = Scenario(seed, ScenarioOptions(nodes=12 if seed == 5 else 0))
    scenario.run()
    print(hashlib.sha256(msgspec.json.encode(scenario.history)).hexdigest())
"""


def said_elsewhere(hash_seed: str) -> str:
    return subprocess.run(  # noqa: S603  # our own program
        [sys.executable, "-c", ELSEWHERE],
        env={"PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_the_same_seed_does_the_same_in_another_process() -> None:
    assert said_elsewhere("1") == said_elsewhere("2")


def test_the_same_seed_does_the_same_again() -> None:
    first, second = (Scenario(3, ScenarioOptions()) for _ in range(2))
    first.run()
    second.run()
    assert msgspec.json.encode(first.history) == msgspec.json.encode(second.history)


def test_another_seed_does_something_else() -> None:
    one, other = run(1, ScenarioOptions()), run(2, ScenarioOptions())
    assert (one.verdict.heard, one.virtual_ns) != (other.verdict.heard, other.virtual_ns)


def test_whoever_publishes_is_heard_at_other_gateways() -> None:
    scenario = Scenario(4, ScenarioOptions(nodes=3, faults=()))
    assert scenario.run().verdict.violations == []
    far = {
        (event.origin, session.gateway)
        for session in scenario.history.sessions
        for event in session.events
        if isinstance(event, DeliveryRecord) and event.origin != session.gateway
    }
    assert len(far) == 6


def test_a_trace_tells_what_broke() -> None:
    trace: list[str] = []
    run(0, ScenarioOptions(nodes=3, faults=("kill",)), trace)
    assert any("is killed" in line for line in trace)
    assert any("link " in line for line in trace)
    times = [float(line.split()[0]) for line in trace]
    assert times == sorted(times)


def test_a_run_does_not_end_while_somebody_waits_for_an_answer() -> None:
    scenario = Scenario(4, ScenarioOptions(nodes=3, faults=()))
    scenario.run()
    assert scenario.world.is_quiet
    scenario.history.asked.append(RequestRecord("q", 1, scenario.world.clock.now_ns))
    assert not scenario.world.is_quiet
