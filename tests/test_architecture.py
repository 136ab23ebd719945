"""ARCHITECTURE.md names only modules and folders that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "ARCHITECTURE.md"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
QUOTED = re.compile(r"`(\w+(?:/[\w.]+)+)`")
DRAWN = re.compile(r"(?<![\w/.])[a-z_]+(?:/[a-z_]+)+")


def paths(page: str) -> list[str]:
    """Return the paths in backticks, and those in diagrams."""
    diagrams = " ".join(body for info, body in FENCE.findall(page) if not info)
    return QUOTED.findall(FENCE.sub("", page)) + DRAWN.findall(diagrams)


def missing(page: str) -> list[str]:
    """Return the paths that are no module or folder of src/weft and no path of the repository."""
    source = ROOT / "src" / "weft"
    return [
        path
        for path in paths(page)
        if not any(
            each.exists()
            for each in (source / path, (source / path).with_suffix(".py"), ROOT / path)
        )
    ]


def test_every_path_exists() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert len(set(paths(page))) > 100
    assert missing(page) == []


def test_a_path_that_does_not_exist_is_noticed() -> None:
    page = (
        "`wire/frames` and `wire/nothing`, `tests/test_layers.py`, `/status`, `mesh.max_links`\n"
        "```\n socket ─▶ broker/ingest ─▶ broker/nothing (/healthz)\n```\n`tests/nothing.py`\n"
        "```layers\nwire/layer\n```\n"
    )
    assert missing(page) == ["wire/nothing", "tests/nothing.py", "broker/nothing"]
