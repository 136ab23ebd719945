import pytest
from pyspark.sql import DataFrame

from weft.errors import BadOption
from weft.pipeline.catalog import NAMES, shipped
from weft.pipeline.job import Job


def halves(
    messages: DataFrame,
    *,
    ratio: float = 0.5,
    count: int = 2,
    name: str = "x",
    is_loud: bool = False,
) -> DataFrame:
    """Halves of everything.

    And more about it.
    """
    return messages.limit(count).where(f"{ratio} > 0 and '{name}' != '' and {is_loud} is not null")


JOB = Job(halves, "subject string, `{name}` double")


def test_a_job_is_called_and_described_as_its_function() -> None:
    assert (JOB.name, JOB.summary) == ("halves", "Halves of everything.")
    assert JOB.parameters == {"ratio": 0.5, "count": 2, "name": "x", "is_loud": False}


def test_values_have_the_type_of_their_default() -> None:
    given = {"ratio": "1", "count": "3", "name": "7", "is_loud": "TRUE"}
    values = JOB.values(given)
    assert values == {"ratio": 1.0, "count": 3, "name": "7", "is_loud": True}
    assert [type(value) for value in values.values()] == [float, int, str, bool]
    assert JOB.columns_for(values) == "subject string, `7` double"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("ration", "1", "halves has no parameter 'ration'; did you mean 'ratio'?"),
        ("zzz", "1", "halves has no parameter 'zzz', only ratio, count, name, is_loud"),
        ("ratio", "half", "ratio is 'half'; it must be a number"),
        ("ratio", "nan", "ratio is nan; it must be finite"),
        ("count", "1.5", "count is '1.5'; it must be a whole number"),
        ("is_loud", "1", "is_loud is '1'; it must be true or false"),
    ],
)
def test_a_mistake_is_named(name: str, text: str, said: str) -> None:
    with pytest.raises(BadOption) as raised:
        JOB.values({name: text})
    assert str(raised.value) == said


def test_a_value_does_not_break_out_of_the_schema() -> None:
    with pytest.raises(BadOption, match="backtick"):
        JOB.columns_for({**JOB.parameters, "name": "a` string, `b"})


@pytest.mark.req("SPK-4")
def test_every_shipped_job_says_what_it_does() -> None:
    jobs = shipped()
    assert list(jobs) == list(NAMES)
    for name, job in jobs.items():
        assert job.name == name
        assert job.summary.endswith(".")
        assert job.columns_for(job.parameters)
