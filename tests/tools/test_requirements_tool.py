"""The requirements command, run on a small project of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "requirements.py"
PAGE = """\
# What it must do

## MM: a mesh

- MM-1 Ravens carry letters.
- MM-2 Ravens come home.
- MM-20 Ravens rest at night.

## TUN: tunnels

- TUN-1 Moles carry parcels.

## Decided

1. *Owls.* Not before MM-1.
"""
SETTINGS = """\
[tool.pytest.ini_options]
testpaths = ["tests"]
addopts = "-q --strict-markers --import-mode=importlib"
markers = ["req(*ids): what this test proves"]
"""


class Project:
    """A folder with a page of requirements and one test file, and the command run on it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "docs").mkdir()
        (root / "tests").mkdir()
        (root / "docs" / "requirements.md").write_text(PAGE)
        (root / "pyproject.toml").write_text(SETTINGS)

    def holds(self, tests: str) -> None:
        (self.root / "tests" / "test_birds.py").write_text(f"import pytest\n{tests}")

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        # A pytest around this one must not lend its options to the one inside.
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
        return subprocess.run(  # noqa: S603  # our own script, on a folder of our own
            [sys.executable, str(TOOL), "--root", str(self.root), *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env={**environment, "COLUMNS": "100", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        )


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_requirement_with_passing_test_is_proven(project: Project) -> None:
    project.holds('@pytest.mark.req("MM-1", "TUN-1")\ndef test_letter(): pass\n')
    result = project.run()
    assert result.stdout.splitlines() == [
        "MM-1   PROVEN     1  Ravens carry letters.",
        "    tests/test_birds.py::test_letter",
        "MM-2   OPEN       0  Ravens come home.",
        "MM-20  OPEN       0  Ravens rest at night.",
        "TUN-1  PROVEN     1  Moles carry parcels.",
        "    tests/test_birds.py::test_letter",
        "2 proven, 0 failing, 2 open of 4",
    ]
    assert result.stderr == ""
    assert result.returncode == 0


def test_requirement_with_failing_test_is_failing_though_another_passes(project: Project) -> None:
    project.holds("""
@pytest.mark.req("MM-1")
def test_letter(): pass

@pytest.mark.req("MM-1")
def test_storm(): assert "raven" == "mole"
""")
    result = project.run("MM-1")
    assert "MM-1  FAILING    2  Ravens carry letters." in result.stdout
    assert "    tests/test_birds.py::test_storm (failed)\n" in result.stdout
    assert result.stdout.endswith("0 proven, 1 failing, 0 open of 1\n")
    assert "assert 'raven' == 'mole'" in result.stderr
    assert result.returncode == 1


def test_project_without_tests_leaves_all_open(project: Project) -> None:
    result = project.run()
    assert result.stdout.endswith("0 proven, 0 failing, 4 open of 4\n")
    assert result.returncode == 0


@pytest.mark.parametrize(
    "body",
    ["pytest.skip('no ravens')", "pytest.xfail('no ravens')"],
)
def test_skipped_test_proves_nothing(project: Project, body: str) -> None:
    project.holds(f'@pytest.mark.req("MM-1")\ndef test_letter(): {body}\n')
    result = project.run("MM-1")
    assert "    tests/test_birds.py::test_letter (skipped)\n" in result.stdout
    assert result.stdout.endswith("0 proven, 0 failing, 1 open of 1\n")
    assert result.returncode == 0


def test_parametrized_test_is_one_test_that_fails_with_any_case(project: Project) -> None:
    project.holds("""
@pytest.mark.req("MM-1")
@pytest.mark.parametrize("text", ["a[b]", "fails", "c::d"])
def test_letter(text): assert text != "fails"
""")
    (found,) = json.loads(project.run("--json", "MM-1").stdout)
    assert found["tests"] == [{"test": "tests/test_birds.py::test_letter", "outcome": "failed"}]


def test_id_of_one_case_is_judged_by_that_case(project: Project) -> None:
    project.holds("""
@pytest.mark.parametrize("home", [
    pytest.param(True, marks=pytest.mark.req("MM-1")),
    pytest.param(False, marks=pytest.mark.req("MM-2")),
])
def test_home(home): assert home
""")
    states = [each["state"] for each in json.loads(project.run("--json", "MM").stdout)]
    assert states == ["PROVEN", "FAILING", "OPEN"]


@pytest.mark.parametrize("fixture", ["assert False", "yield; assert False"])
def test_error_in_setup_or_teardown_is_a_failure(project: Project, fixture: str) -> None:
    project.holds(f"""
@pytest.fixture
def raven(): {fixture}

@pytest.mark.req("MM-1")
def test_letter(raven): pass
""")
    result = project.run("MM-1")
    assert "MM-1  FAILING" in result.stdout
    assert result.returncode == 1


def test_marker_of_a_class_counts_for_its_tests(project: Project) -> None:
    project.holds("""
@pytest.mark.req("MM-1")
class TestRavens:
    @pytest.mark.req("MM-2")
    def test_home(self): pass
""")
    found = json.loads(project.run("--json", "MM-1", "MM-2").stdout)
    proof = [{"test": "tests/test_birds.py::TestRavens::test_home", "outcome": "passed"}]
    assert [each["tests"] for each in found] == [proof, proof]


def test_test_without_id_is_not_run(project: Project) -> None:
    project.holds("def test_owl(): raise SystemExit\n")
    result = project.run()
    assert result.stderr == ""
    assert result.returncode == 0


def test_unknown_id_is_named_with_its_test(project: Project) -> None:
    project.holds('@pytest.mark.req("MM-99")\ndef test_letter(): pass\n')
    result = project.run("TUN")
    assert result.stderr == (
        "tests/test_birds.py::test_letter carries MM-99, which docs/requirements.md does not have\n"
    )
    assert result.stdout.endswith("0 proven, 0 failing, 1 open of 1\n")
    assert result.returncode == 1


def test_file_that_cannot_be_imported_is_a_failure(project: Project) -> None:
    project.holds("import no_such_bird\n")
    result = project.run()
    assert "NOT COLLECTED tests/test_birds.py" in result.stderr
    assert "no_such_bird" in result.stderr
    assert result.returncode == 1


def test_filter_is_an_id_or_a_prefix_up_to_the_dash(project: Project) -> None:
    found = json.loads(project.run("--json", "TUN", "MM-2").stdout)
    assert [each["id"] for each in found] == ["MM-2", "TUN-1"]


def test_filter_runs_only_the_tests_it_asks_for(project: Project) -> None:
    project.holds('@pytest.mark.req("MM-1")\ndef test_letter(): assert False\n')
    assert project.run("MM-2").returncode == 0


def test_open_leaves_out_what_is_proven_but_counts_it(project: Project) -> None:
    project.holds("""
@pytest.mark.req("MM-1")
def test_letter(): pass

@pytest.mark.req("MM-2")
def test_home(): assert False
""")
    lines = project.run("--open", "MM").stdout.splitlines()
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == ["MM-2", "MM-20", "1"]
    assert lines[-1] == "1 proven, 1 failing, 1 open of 3"


def test_json_holds_id_text_state_and_tests(project: Project) -> None:
    project.holds("""
@pytest.mark.req("MM-2")
def test_home(): print("noise")
""")
    result = project.run("--json", "--open", "MM-1", "MM-2")
    assert json.loads(result.stdout) == [
        {"id": "MM-1", "text": "Ravens carry letters.", "state": "OPEN", "tests": []},
    ]
    assert json.loads(project.run("--json", "MM-2").stdout) == [
        {
            "id": "MM-2",
            "text": "Ravens come home.",
            "state": "PROVEN",
            "tests": [{"test": "tests/test_birds.py::test_home", "outcome": "passed"}],
        },
    ]


def test_long_text_is_shortened_to_the_terminal(project: Project) -> None:
    (project.root / "docs" / "requirements.md").write_text(f"- MM-1 {'raven ' * 40}\n")
    line = project.run().stdout.splitlines()[0]
    assert line.endswith("raven…")
    assert len(line) <= 100


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--no-such-option"], "--no-such-option"),
        (["OWL"], "there is no requirement OWL"),
        (["M"], "there is no requirement M"),
    ],
)
def test_wrong_usage_exits_with_two(project: Project, arguments: list[str], complaint: str) -> None:
    result = project.run(*arguments)
    assert complaint in result.stderr
    assert result.returncode == 2


@pytest.mark.parametrize(
    ("page", "complaint"),
    [
        ("- MM-1 a\n- MM-1 b\n", "has MM-1 twice"),
        ("nothing\n", "has no line of the form"),
    ],
)
def test_page_that_cannot_be_used_exits_with_two(
    project: Project, page: str, complaint: str
) -> None:
    (project.root / "docs" / "requirements.md").write_text(page)
    result = project.run()
    assert complaint in result.stderr
    assert result.returncode == 2


def test_missing_page_exits_with_two(project: Project) -> None:
    (project.root / "docs" / "requirements.md").unlink()
    result = project.run()
    assert "there is no" in result.stderr
    assert result.returncode == 2


def test_pytest_that_is_stopped_is_no_report(project: Project) -> None:
    project.holds('@pytest.mark.req("MM-1")\ndef test_letter(): pytest.exit("the storm")\n')
    result = project.run()
    assert "the storm" in result.stderr
    assert result.stdout == ""
    assert result.returncode == 1
