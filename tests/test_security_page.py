"""The threat model names tests that exist."""

import re
from pathlib import Path

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "security.md"


def test_every_test_that_the_threat_model_names_is_there() -> None:
    text = PAGE.read_text(encoding="utf-8")
    model = text[text.index("## Threat model") : text.index("## What one key may take")]
    missing = []
    for row in model.splitlines():
        folder = ""
        for name in re.findall(r"`((?:[a-z]+/)*test_[a-z_*]+\.py)`", row):
            folder = name.rpartition("/")[0] or folder
            if not list((TESTS / folder).glob(name.rpartition("/")[2])):
                missing.append(f"{folder}/{name}")
    assert missing == []
    assert len(re.findall(r"test_[a-z_*]+\.py", model)) > 20
