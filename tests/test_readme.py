import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("fuzz/*.md")])
EXAMPLES = [
    pytest.param(code, id=f"{page.name}-{number}")
    for page in PAGES
    for number, code in enumerate(
        re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S)
    )
]
LINKS = [
    pytest.param(page, link, id=f"{page.name}-{link}")
    for page in PAGES
    for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text())
]


@pytest.mark.parametrize("code", EXAMPLES)
def test_an_example_runs_as_it_is_printed(code: str) -> None:
    exec(code, {})  # noqa: S102  # our own pages


@pytest.mark.parametrize(("page", "link"), LINKS)
def test_a_link_leads_somewhere(page: Path, link: str) -> None:
    assert (page.parent / link).exists()


def test_every_make_target_that_a_page_names_is_there() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    named = {
        target
        for page in PAGES
        for target in re.findall(r"(?:`|^)make ([a-z-]+)", page.read_text(), re.M)
    }
    assert named
    assert named <= targets
