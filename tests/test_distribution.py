"""The package is installed as weft-mesh: `weft` on the package index is somebody else's."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from weft import distribution

ROOT = Path(__file__).parent.parent
TEXTS = {".c", ".in", ".js", ".json", ".md", ".pxd", ".py", ".sh", ".toml", ".ts"}
MADE = {".venv", "build", "corpus", "node_modules"}
# An install command, a requirement with extras, or a look-up of metadata under the imported name.
STRANGER = re.compile(
    r"""\bweft\\?\[[a-z]
      | \b(?:pip3?|uv|pipx|poetry|npm)\ +(?:pip\ +)?(?:install|add|i)\b
        [^\n`#]*?["'\ ]weft(?![-\w./])
      | metadata\.\w+\(["']weft["']\)
    """,
    re.VERBOSE,
)


def texts() -> Iterator[Path]:
    """Every text of the project but this one, which names what it looks for."""
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        is_ours = not MADE & set(parts) and not any(part.endswith(".egg-info") for part in parts)
        is_text = path.suffix in TEXTS or path.name == "Makefile"
        if is_ours and is_text and path.is_file() and path != Path(__file__):
            yield path


@pytest.mark.parametrize(
    "text",
    [
        'pip install "weft[spark]"',
        "pip install weft",
        "`pip install --upgrade weft`",
        "uv pip install weft==0.1",
        "npm install weft",
        "one that has weft[journal]",
        'metadata.version("weft")',
    ],
)
def test_a_text_that_names_the_other_project_is_found(text: str) -> None:
    assert STRANGER.search(text)


@pytest.mark.parametrize(
    "text",
    ['pip install "weft-mesh[spark]"', "pip install weft-mesh", "pip install ./weft.whl"],
)
def test_our_own_name_is_accepted(text: str) -> None:
    assert not STRANGER.search(text)


def test_no_text_suggests_the_package_of_another_project() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in texts()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if STRANGER.search(line)
    ]
    assert found == []


def test_the_installed_package_has_the_name_that_texts_give() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'name = "{distribution.NAME}"' in project
    assert f'version = "{distribution.installed_version()}"' in project
