"""The glossary is a table of unique terms, in order, whose modules exist."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
ROW = re.compile(r"^\| (?P<term>.+?) \| (?P<meaning>.+) \| (?P<modules>.*?) \|$", re.MULTILINE)


class Entry(NamedTuple):
    """One row of the glossary."""

    term: str
    meaning: str
    modules: list[str]


def entries(page: str) -> list[Entry]:
    rows = [row for row in ROW.finditer(page) if row["term"] not in ("term", "---")]
    return [
        Entry(row["term"], row["meaning"], re.findall(r"`([^`]+)`", row["modules"])) for row in rows
    ]


def is_module(name: str) -> bool:
    path = ROOT / "src" / "weft" / name
    return path.is_dir() or path.with_suffix(".py").is_file()


PAGE = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
ENTRIES = entries(PAGE)


def test_every_line_of_the_table_is_an_entry() -> None:
    lines = [line for line in PAGE.splitlines() if line.startswith("|")]
    assert len(ENTRIES) == len(lines) - 2
    assert len(ENTRIES) > 100


def test_terms_are_unique_and_sorted() -> None:
    terms = [each.term.casefold() for each in ENTRIES]
    assert terms == sorted(set(terms))


@pytest.mark.parametrize("entry", [pytest.param(each, id=each.term) for each in ENTRIES])
def test_entry_is_one_sentence_with_modules_that_exist(entry: Entry) -> None:
    assert entry.meaning.endswith(".")
    assert ". " not in entry.meaning
    assert entry.modules
    missing = [name for name in entry.modules if not is_module(name)]
    assert not missing, f"{entry.term}: not below src/weft: {', '.join(missing)}"


def test_a_module_that_is_not_there_is_noticed() -> None:
    assert is_module("errors")
    assert is_module("client")
    assert not is_module("client/nothing")
