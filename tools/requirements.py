"""Prints which tests prove each requirement of docs/requirements.md, and whether they pass.

Runs the tests that carry an id, once. A skipped test proves nothing, and a parametrized test is one
test that fails with any of its cases. Exits with 1 if such a test failed or carries an id that the
page does not have, with 2 if called wrongly.
"""

import argparse
import contextlib
import io
import json
import re
import shutil
import sys
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

PAGE = Path("docs") / "requirements.md"
REQUIREMENT = re.compile(r"^- ([A-Z]+-\d+) (.+)$", re.MULTILINE)
# The stronger outcome of two cases, or of two phases of one case, is the test's.
STRENGTH = {"skipped": 0, "passed": 1, "failed": 2}
RAN_TO_THE_END = {
    pytest.ExitCode.OK,
    pytest.ExitCode.TESTS_FAILED,
    pytest.ExitCode.NO_TESTS_COLLECTED,
}


class WrongUsage(Exception):
    """The command line, or the page it points at, cannot be used."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One requirement with the outcome of every test that carries its id."""

    requirement: str
    text: str
    outcomes: Mapping[str, str]

    @property
    def state(self) -> str:
        """PROVEN, FAILING or OPEN."""
        outcomes = self.outcomes.values()
        if "failed" in outcomes:
            return "FAILING"
        return "PROVEN" if "passed" in outcomes else "OPEN"


@dataclass(frozen=True, slots=True)
class Case:
    """One case of a test: the test's name without parameters, and the ids it carries."""

    test: str
    ids: frozenset[str]


@dataclass(slots=True, eq=False)
class Evidence:
    """A pytest plugin that runs the tests carrying a wanted id and keeps their outcomes."""

    known: Collection[str]
    wanted: Collection[str]
    cases: dict[str, Case] = field(default_factory=dict)
    outcomes: dict[tuple[str, str], str] = field(default_factory=dict)
    unknown: set[tuple[str, str]] = field(default_factory=set)
    failures: list[str] = field(default_factory=list)
    finished: int = 0

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Keep only the tests that carry a wanted id: the others say nothing here."""
        kept, left = [], []
        for item in items:
            case = carried_by(item)
            self.unknown.update((each, case.test) for each in case.ids if each not in self.known)
            if case.ids.isdisjoint(self.wanted):
                left.append(item)
                continue
            kept.append(item)
            self.cases[item.nodeid] = case
            self._note(case, "skipped")
        if left:
            config.hook.pytest_deselected(items=left)
        items[:] = kept

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep a file that cannot be imported as a failure: its ids cannot even be read."""
        if report.failed:
            self.failures.append(f"NOT COLLECTED {report.nodeid}\n{report.longreprtext}")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take in one phase of one case: only the call can prove, every phase can fail."""
        if report.failed:
            self._note(self.cases[report.nodeid], "failed")
            self.failures.append(f"FAILED {report.nodeid} ({report.when})\n{report.longreprtext}")
        elif report.passed and report.when == "call":
            self._note(self.cases[report.nodeid], "passed")

    def pytest_runtest_logfinish(self) -> None:
        """Show on a terminal how far the run has come."""
        self.finished += 1
        show_progress(f"{self.finished} of {len(self.cases)} tests")

    def outcomes_of(self, requirement: str) -> dict[str, str]:
        """The tests that carry this id, by name, with their outcomes."""
        return {
            test: outcome
            for (each, test), outcome in sorted(self.outcomes.items())
            if each == requirement
        }

    def _note(self, case: Case, outcome: str) -> None:
        for requirement in case.ids:
            key = (requirement, case.test)
            self.outcomes[key] = max(
                self.outcomes.get(key, outcome), outcome, key=STRENGTH.__getitem__
            )


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    options = parsed(arguments)
    try:
        requirements = read_requirements(options.root / PAGE)
        wanted = chosen(requirements, options.ids)
    except WrongUsage as error:
        print(f"requirements: {error}", file=sys.stderr)
        return 2
    evidence = Evidence(known=requirements.keys(), wanted=wanted)
    if not run_tests(options.root, evidence):
        return 1
    findings = [Finding(each, requirements[each], evidence.outcomes_of(each)) for each in wanted]
    print(as_json(findings, options.open) if options.json else as_text(findings, options.open))
    return 1 if evidence.failures or evidence.unknown else 0


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line as values."""
    parser = argparse.ArgumentParser(
        prog="requirements", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument(
        "ids", nargs="*", metavar="ID", help="only these: an id (MM-2) or MM for all of MM"
    )
    parser.add_argument("--open", action="store_true", help="only those that are open or failing")
    parser.add_argument("--json", action="store_true", help="print a JSON list")
    parser.add_argument(
        "--root",
        type=lambda folder: Path(folder).resolve(),
        default=Path(__file__).resolve().parent.parent,
        help="the folder that holds docs/ and tests/ (default: this project)",
    )
    return parser.parse_args(arguments)


def read_requirements(page: Path) -> dict[str, str]:
    """The text of every requirement by id, in the order of the page.

    Raises:
        WrongUsage: The page is missing, has no requirement, or gives one id twice.
    """
    if not page.is_file():
        raise WrongUsage(f"there is no {page}")
    requirements: dict[str, str] = {}
    for requirement, text in REQUIREMENT.findall(page.read_text(encoding="utf-8")):
        if requirement in requirements:
            raise WrongUsage(f"{page} has {requirement} twice")
        requirements[requirement] = text.strip()
    if not requirements:
        raise WrongUsage(f"{page} has no line of the form '- MM-2 text'")
    return requirements


def chosen(requirements: Iterable[str], filters: Sequence[str]) -> list[str]:
    """The ids that the filters name, or all of them without filters.

    Raises:
        WrongUsage: A filter names no requirement.
    """
    known = list(requirements)
    if not filters:
        return known
    named: set[str] = set()
    for each in filters:
        found = [one for one in known if one == each or one.startswith(f"{each}-")]
        if not found:
            raise WrongUsage(f"there is no requirement {each}")
        named.update(found)
    return [one for one in known if one in named]


def carried_by(item: pytest.Item) -> Case:
    """What a collected case stands for."""
    test = item.nodeid
    if isinstance(item, pytest.Function):
        test = item.nodeid.removesuffix(item.name) + item.originalname
    ids = (str(each) for marker in item.iter_markers("req") for each in marker.args)
    return Case(test, frozenset(ids))


def run_tests(root: Path, evidence: Evidence) -> bool:
    """Run pytest once, silently, tell on stderr what went wrong, and say if it ran to the end."""
    # Like `python -m pytest`, which finds the project's folders and not this one's.
    sys.path[0] = str(root)
    output = io.StringIO()
    arguments = [f"--rootdir={root}", "--tb=short", "--color=no", "--continue-on-collection-errors"]
    show_progress("collecting")
    with contextlib.chdir(root), contextlib.redirect_stdout(output):
        status = pytest.main(arguments, plugins=[evidence])
    show_progress("")
    for failure in evidence.failures:
        print(failure, end="\n\n", file=sys.stderr)
    for requirement, test in sorted(evidence.unknown):
        print(f"{test} carries {requirement}, which {PAGE} does not have", file=sys.stderr)
    if status not in RAN_TO_THE_END:
        print(output.getvalue(), file=sys.stderr)
        print(f"requirements: pytest did not run to its end (exit {int(status)})", file=sys.stderr)
        return False
    return True


def show_progress(text: str) -> None:
    """Replace the progress line, if there is a terminal to show it on."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def as_json(findings: Iterable[Finding], is_open_only: bool) -> str:
    """The findings as a JSON list."""
    listed = [
        {
            "id": each.requirement,
            "text": each.text,
            "state": each.state,
            "tests": [
                {"test": test, "outcome": outcome} for test, outcome in each.outcomes.items()
            ],
        }
        for each in findings
        if not (is_open_only and each.state == "PROVEN")
    ]
    return json.dumps(listed, indent=2, ensure_ascii=False)


def as_text(findings: Sequence[Finding], is_open_only: bool) -> str:
    """The findings as lines for a person, the summary last."""
    columns = shutil.get_terminal_size(fallback=(100, 24)).columns
    id_width = max(len(each.requirement) for each in findings)
    lines = []
    for each in findings:
        if is_open_only and each.state == "PROVEN":
            continue
        start = f"{each.requirement:{id_width}}  {each.state:7}  {len(each.outcomes):3}  "
        room = max(columns - len(start), 20)
        lines.append(start + textwrap.shorten(each.text, room, placeholder="…"))
        lines.extend(f"    {line}" for line in shown_tests(each.outcomes))
    states = [each.state for each in findings]
    counts = ", ".join(
        f"{states.count(one)} {one.lower()}" for one in ("PROVEN", "FAILING", "OPEN")
    )
    return "\n".join([*lines, f"{counts} of {len(states)}"])


def shown_tests(outcomes: Mapping[str, str]) -> list[str]:
    """A line for each test; only an outcome that proves nothing is spelt out."""
    return [
        test if outcome == "passed" else f"{test} ({outcome})" for test, outcome in outcomes.items()
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
