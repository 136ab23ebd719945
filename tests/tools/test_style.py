"""The check of prose and names, run on small projects."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tools.style import names, prose
from tools.style.__main__ import main
from tools.style.sources import passages_of

ROOT = Path(__file__).resolve().parents[2]


class Project:
    """A folder with some files, and the check run on it."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root = root
        self._capsys = capsys

    def has(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def sets(self, **lists: list[str]) -> None:
        rows = [f"{key} = {json.dumps(value)}\n" for key, value in lists.items()]
        self.has("pyproject.toml", "[tool.weft-style]\n" + "".join(rows))

    def run(self, *arguments: str) -> tuple[int, str]:
        paths = [each if each.startswith("-") else self._full(each) for each in arguments]
        status = main(["--root", str(self.root), *paths])
        return status, self._capsys.readouterr().out

    def _full(self, argument: str) -> str:
        path = self.root / argument
        return str(path) if path.exists() else argument

    def fails_to_run(self, *arguments: str) -> str:
        with pytest.raises(SystemExit) as stopped:
            self.run(*arguments)
        assert stopped.value.code == 2
        return self._capsys.readouterr().err


@pytest.fixture
def project(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Project:
    return Project(tmp_path, capsys)


def found(path: str, source: str) -> list[tuple[int, str]]:
    return [(each.line, each.rule) for each in prose.check([(path, source)], Counter())]


def texts(path: str, source: str) -> list[str]:
    return [each.text.strip() for each in passages_of(path, source)]


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("whoever", "Whoever brings messages."),
        ("whoever", "to whomever it may concern"),
        ("those-who", "for those who wait"),
        ("what-is", "What one has, and what is sent."),
        ("what-is", "what\ncomes next"),
        ("somebody", "if nobody wants it"),
        ("told", "the publisher is told"),
        ("so-many", "after so many messages"),
        ("say-if", "Say if it is open."),
        ("anew", "dials anew"),
        ("it-is-none", "WrongType: it is none."),
        ("it-is-none", "BadOption: An option cannot be."),
        ("it-is-none", "BadOption: A value that cannot be; the text has the key."),
        ("it-is-none", "that is no gateway"),
    ],
)
def test_a_construction_is_found(rule: str, text: str) -> None:
    assert [each for _, each in found("docs/a.md", text)] == [rule]


@pytest.mark.parametrize(
    "text",
    [
        "it is no longer open",
        "it cannot be read",
        "there is no gateway",
        "whatsoever",
        "as so on",
        "what a subscriber receives",
        "essay if",
        "We say if it is.",
    ],
)
def test_ordinary_english_is_not_found(text: str) -> None:
    assert found("docs/a.md", text) == []


MODULE = '''\
"""Module for those who read.

And for whoever writes.
"""

LIMIT = "so many"  # nobody counts


class A:
    """What is an A."""

    def f(self, x: int) -> str:
        """Say if it is."""
        # dialled
        # anew
        return f"told the {x} peer" + "#whoever"


async def g() -> str:
    """A message for everybody."""
    return "the last" + (
        "limit, which"
        " everybody knows"
    )
'''


def test_docstrings_comments_and_literals_of_src_are_prose() -> None:
    assert sorted(found("src/weft/a.py", MODULE)) == [
        (1, "those-who"),
        (3, "whoever"),
        (6, "somebody"),
        (10, "what-is"),
        (13, "say-if"),
        (15, "anew"),
        (16, "told"),
        (20, "somebody"),
        (22, "somebody"),
    ]


def test_literals_elsewhere_are_not_prose() -> None:
    rules = [rule for _, rule in found("tests/a.py", MODULE)]
    assert "told" not in rules
    assert rules.count("somebody") == 2


def test_a_literal_of_two_words_is_not_prose() -> None:
    assert texts("src/a.py", 'A = "two words"\nB = f"three {1} more words"') == [
        "three … more words"
    ]


def test_a_hash_in_a_string_begins_no_comment() -> None:
    source = 'a = "# one"  # two "quoted"\nb = """\n# three\n"""\nc = \'\\\'# four\'\n# five'
    assert texts("tests/a.pxd", source) == ['two "quoted"', "five"]


def test_adjacent_comments_are_one_passage() -> None:
    (finding,) = prose.check([("src/weft/a.pxd", "# what\n# comes\n\n# next\n")], Counter())
    assert (finding.line, finding.text) == (1, "'what comes' in: # what")


PAGE = """\
# A page

Some `whoever` and [a link](whoever.md), `two
lines for nobody`.

```sh
echo nobody
```

After it: nobody.

> ~~~
> nobody
> ~~~

Said "to nobody" and *nobody*.
"""


def test_code_and_link_targets_of_a_page_are_not_prose() -> None:
    assert found("docs/a.md", PAGE) == [(10, "somebody"), (16, "somebody"), (16, "somebody")]


def test_quotations_of_the_style_guide_are_not_prose() -> None:
    assert found("STYLE.md", PAGE) == [(10, "somebody")]


def test_words_are_counted_by_area() -> None:
    words = Counter[str]()
    sources = [("src/a.py", '"""One two."""'), ("src/README.md", "three"), ("tools/b.py", "# four")]
    assert not list(prose.check(sources, words))
    assert words == {"src": 2, "docs": 1, "other": 1}


def rules_of(*sources: tuple[str, str]) -> list[tuple[str, int, str]]:
    return [(each.path, each.line, each.rule) for each in names.check(sources)]


def test_public_classes_of_one_name_are_found_at_each_place() -> None:
    sources = [
        ("src/weft/a.py", "class Link: ...\nclass _Link: ..."),
        ("src/weft/b.py", "\nclass Link: ...\nclass _Link: ..."),
        ("src/weft/c.py", "class Outer:\n    class Link: ..."),
        ("tests/d.py", "class Link: ..."),
    ]
    assert rules_of(*sources) == [
        ("src/weft/a.py", 1, "class-names"),
        ("src/weft/b.py", 2, "class-names"),
    ]


def test_module_names_recur_only_for_kinds_commands_and_jobs() -> None:
    paths = ["a/ring", "b/ring", "a/protocol", "b/protocol", "cli/commands/mesh", "mesh", "mesh/x"]
    sources = [(f"src/weft/{path}.py", "") for path in paths]
    assert rules_of(*sources) == [
        ("src/weft/a/ring.py", 1, "module-names"),
        ("src/weft/b/ring.py", 1, "module-names"),
    ]


def test_a_folder_has_a_limit_on_modules_without_its_init() -> None:
    full = [(f"src/weft/a/m{number}.py", "") for number in range(22)]
    assert rules_of(*full, ("src/weft/a/__init__.py", "")) == []
    assert rules_of(*full, ("src/weft/a/m22.py", "")) == [("src/weft/a", 1, "folder-size")]


@pytest.mark.parametrize("suffix", ["py", "pxd"])
def test_a_file_has_a_limit_on_lines(suffix: str) -> None:
    path = f"src/weft/a.{suffix}"
    assert rules_of((path, "\n" * 400)) == []
    assert rules_of((path, "\n" * 401)) == [(path, 401, "file-size")]


CLIENT = "import json\nfrom weft import errors\nfrom weft.wire.frames import x\nfrom . import y\n"
WIRE = ("src/weft/wire/frames.py", "")


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("a.py", "from weft.broker import x"),
        ("a.py", "import weft"),
        ("a.py", "from weft import Message"),
        ("deep/a.py", "def f():\n    from ...mesh import x"),
        ("a.pxd", "from weft.broker.outbox cimport Outbox"),
        ("a.py", "import weft.wires"),
    ],
)
def test_the_client_imports_only_wire_and_errors(path: str, source: str) -> None:
    line = len(source.splitlines())
    bad = (f"src/weft/client/{path}", source)
    assert rules_of(WIRE, bad) == [(bad[0], line, "client-imports")]
    assert rules_of(bad) == []  # weft.wire does not exist yet
    assert rules_of(WIRE, ("src/weft/mesh/a.py", source)) == []
    assert rules_of(WIRE, ("src/weft/client/b.py", CLIENT)) == []


def test_findings_are_warnings_in_one_line_a_rule(project: Project) -> None:
    project.has("README.md", "Nobody knows whoever.\n\nNobody.\n")
    status, output = project.run()
    assert status == 0
    lines = output.splitlines()
    assert lines[0] == "style: 4 words in docs; 0 errors"
    assert [line.split()[:3] for line in lines[2:]] == [
        ["whoever", "1", "250.00"],
        ["somebody", "2", "500.00"],
    ]


def test_a_clean_project_has_one_line(project: Project) -> None:
    project.has("README.md", "A message broker.\n")
    assert project.run("--strict") == (0, "style: 3 words in docs; 0 errors\n")


def test_a_finding_in_a_finished_path_is_an_error(project: Project) -> None:
    project.has("docs/a.md", "For nobody.\n")
    project.has("docs/ab.md", "For nobody.\n")
    project.has("tools/b.py", "# for nobody\n")
    project.sets(finished=["docs/a.md", "tools/"])
    status, output = project.run()
    assert status == 1
    assert [line for line in output.splitlines() if line.startswith("error")] == [
        "error: docs/a.md:1: somebody: 'nobody' in: For nobody.",
        "error: tools/b.py:1: somebody: 'nobody' in: # for nobody",
    ]


def test_a_rule_of_errors_is_one_everywhere(project: Project) -> None:
    project.has("src/weft/a.py", "\n" * 401)
    assert project.run()[0] == 0
    project.sets(errors=["file-size"])
    status, output = project.run()
    assert status == 1
    assert output.startswith("error: src/weft/a.py:401: file-size: 401 lines, limit 400\n")


def test_strict_fails_prose_above_the_limit_only(project: Project) -> None:
    project.has("README.md", "word " * 3999 + "nobody")
    assert project.run("--strict")[0] == 0
    project.has("docs/a.md", "Nobody.")
    status, output = project.run("--strict")
    assert status == 1
    assert output.startswith("error: somebody: 0.50 per 1,000 words in docs, limit 0.3\n")


def test_strict_fails_names(project: Project) -> None:
    project.has("src/weft/a.py", "\n" * 401)
    assert project.run("--strict")[0] == 1


def test_list_prints_the_places_of_a_rule_or_of_all(project: Project) -> None:
    project.has("README.md", "Nobody knows\nwhoever.\n")
    whoever = "README.md:2: whoever: 'whoever' in: whoever.\n"
    assert project.run("--list", "whoever") == (0, whoever)
    somebody = "README.md:1: somebody: 'Nobody' in: Nobody knows\n"
    assert project.run("--list") == (0, somebody + whoever)
    assert project.run("--list", "told") == (0, "")


def test_paths_restrict_the_check(project: Project) -> None:
    project.has("docs/a.md", "Nobody.\n")
    project.has("docs/deep/b.md", "Nobody knows.\n")
    assert project.run("docs/deep")[1].startswith("style: 2 words in docs; 0 errors\n")
    assert project.run("--list", "all", "docs/a.md")[1].count("\n") == 1


def test_json_has_counts_rates_and_findings(project: Project) -> None:
    project.has("docs/a.md", "For nobody.\n")
    project.sets(finished=["docs/a.md"])
    status, output = project.run("--json")
    report: dict[str, Any] = json.loads(output)
    assert status == 1
    assert report["words"] == {"docs": 2}
    assert report["over_limit"] == []
    counts = {each["rule"]: (each["count"], each["per_1000_words"]) for each in report["rules"]}
    assert counts["somebody"] == (1, {"docs": 500.0})
    assert counts["file-size"] == (0, {})
    assert report["findings"] == [
        {
            "path": "docs/a.md",
            "line": 1,
            "rule": "somebody",
            "text": "'nobody' in: For nobody.",
            "is_error": True,
        }
    ]


@pytest.mark.parametrize(
    ("lists", "complaint"),
    [
        ({"finished": ["nowhere.md"]}, "finished path 'nowhere.md'"),
        ({"errors": ["spelling"]}, "unknown rule 'spelling'"),
        ({"exceptions": ["a"]}, "unknown key 'exceptions'"),
    ],
)
def test_wrong_settings_exit_with_two(
    project: Project, lists: dict[str, list[str]], complaint: str
) -> None:
    project.sets(**lists)
    assert complaint in project.fails_to_run()


def test_settings_of_another_type_exit_with_two(project: Project) -> None:
    project.has("pyproject.toml", '[tool.weft-style]\nfinished = "README.md"\n')
    assert "finished in [tool.weft-style] is not a list of strings" in project.fails_to_run()


def test_wrong_usage_exits_with_two(project: Project) -> None:
    assert "nowhere does not exist" in project.fails_to_run("nowhere")
    assert "invalid choice: 'spelling'" in project.fails_to_run("--list", "spelling")


def test_help_explains_every_rule() -> None:
    command = [sys.executable, "-m", "tools.style", "--help"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout  # noqa: S603  # our own module
    for rule in (*prose.RULES, *names.RULES):
        assert f"  {rule.name:16}{rule.advice}\n" in shown


def test_a_reader_that_closes_the_pipe_leaves_no_traceback(project: Project) -> None:
    project.has("README.md", "Nobody.\n" * 20_000)
    command = [sys.executable, "-m", "tools.style", "--list", "--root", str(project.root)]
    with subprocess.Popen(  # noqa: S603  # our own module
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1
