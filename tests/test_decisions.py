"""Decision records are numbered one after the other, and each is titled with its number."""

from pathlib import Path

RECORDS = sorted((Path(__file__).parents[1] / "docs" / "decisions").glob("[0-9]*.md"))


def test_numbers_are_consecutive() -> None:
    assert [int(record.name[:4]) for record in RECORDS] == list(range(1, len(RECORDS) + 1))


def test_a_title_has_the_number_of_its_file() -> None:
    for record in RECORDS:
        title = record.read_text(encoding="utf-8").splitlines()[0]
        assert title.startswith(f"# {int(record.name[:4])}. "), record.name
