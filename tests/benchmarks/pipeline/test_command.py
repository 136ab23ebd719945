from collections.abc import Callable
from typing import Any

import pytest
from benchmarks.pipeline.__main__ import WARM_ROUNDS, lines, run, summary
from benchmarks.pipeline.cases import CASES, Case
from rich.progress import Progress

SECONDS = {"weft": [2.0, 1.0, 4.0], "parquet": [1.0, 1.0, 1.0]}


def case_of(asked: list[str]) -> Case:
    def way(engine: str) -> Callable[[object], float]:
        def answer(_: object) -> float:
            asked.append(engine)
            return float(len(asked))

        return answer

    return Case("some", "some case", {"weft": way("weft"), "parquet": way("parquet")})


def test_engines_take_turns_and_the_first_rounds_do_not_count() -> None:
    asked: list[str] = []
    stage: Any = None
    with Progress(disable=True) as progress:
        found = run(stage, [case_of(asked)], 2, progress)
    assert len(asked) == 2 * (WARM_ROUNDS + 2)
    assert asked[:4] == ["weft", "parquet", "parquet", "weft"]
    counted = sorted(second for engine in found["some"].values() for second in engine)
    assert counted == [float(number) for number in range(2 * WARM_ROUNDS + 1, len(asked) + 1)]


def test_rates_and_ratios_are_medians_of_the_rounds() -> None:
    found = summary(case_of([]), SECONDS, 1000)
    assert found["per_s"]["weft"]["median"] == 500
    assert found["per_s"]["parquet"] == {"median": 1000, "low": 1000, "high": 1000}
    assert found["ratio"] == pytest.approx(0.5)


def test_the_table_has_a_line_for_every_case() -> None:
    facts = dict.fromkeys(
        ["processor", "cores", "load_before", "pyspark", "pyarrow", "duckdb"], "x"
    )
    one = summary(case_of([]), SECONDS, 1_000_000)
    text = "\n".join(lines({"rows": 7, "rounds": 3, "machine": facts, "cases": [one]}))
    assert "500 k (375 k … 750 k)" in text
    assert "0.50×" in text
    assert "some: some case" in text


def test_every_case_has_a_name_of_its_own_and_a_way_for_weft() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
    assert all("weft" in case.ways for case in CASES)
