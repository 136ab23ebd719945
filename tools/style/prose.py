"""Rules of prose: constructions that ordinary technical English does without.

In the documentation of websockets, trio, asyncpg, httpcore, pyzmq, nats-server, centrifuge and
redis each occurs at most 0.3 times in 1,000 words.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from tools.style.findings import Finding, Rule
from tools.style.sources import WORD, passages_of

LIMIT_PER_1000_WORDS = 0.3
RULES = (
    Rule("whoever", "name the person or part: the publisher, the caller"),
    Rule("those-who", "name the thing: subscribers, pending requests"),
    Rule("what-is", "replace the free relative clause by a noun"),
    Rule("somebody", "name the person or part; Return whether X has no receivers"),
    Rule("told", "use the verb of the act: notify, send, report, fail"),
    Rule("so-many", "give the number or its name: at most N, after linger_s"),
    Rule("say-if", "write: Return whether, True if"),
    Rule("anew", "write: again, or the act: reconnect, restart"),
    Rule("it-is-none", "name the condition: invalid address, not a Weft gateway"),
)
_WHAT = "is was are were it they comes? came goes went has had others?".replace(" ", "|")
_PATTERNS = {
    "whoever": r"(?i)\bwho(?:m)?ever\b",
    "those-who": r"(?i)\bthose (?:who|that|which|whom|whose)\b",
    "what-is": rf"(?i)\bwhat (?:{_WHAT})\b",
    "somebody": r"(?i)\b(?:some|any|no|every)body\b",
    "told": r"(?i)\b(?:(?:is|are|was|were|be) )?told\b",
    "so-many": r"(?i)\bso (?:many|much|long|often)\b",
    "say-if": r"\bSay (?:if|whether|that|which|how)\b",
    "anew": r"(?i)\banew\b",
    # Also a sentence that ends in `cannot be`; but `it is no longer open` is ordinary.
    "it-is-none": r"(?i)\b(?:cannot be(?=\s*(?:[.;:]\s|[.;:]?\Z))"
    r"|(?:it|this|that) is (?:none\b|no (?!longer|more|less|use|such)[a-z]+))",
}
_COMPILED = {name: re.compile(pattern.replace(" ", r"\s+")) for name, pattern in _PATTERNS.items()}


def area_of(path: str) -> str:
    """Return the area whose words a file is counted in."""
    if path.endswith(".md"):
        return "docs"
    return "src" if path.startswith("src/") else "other"


def check(sources: Iterable[tuple[str, str]], words: Counter[str]) -> Iterator[Finding]:
    """Yield the findings of files, and add the words of each to its area's count."""
    for path, source in sources:
        lines = source.split("\n")
        for passage in passages_of(path, source):
            words[area_of(path)] += len(WORD.findall(passage.text))
            for name, pattern in _COMPILED.items():
                for found in pattern.finditer(passage.text):
                    line = passage.line_of(found.start())
                    match = " ".join(found[0].split())
                    yield Finding(path, line, name, f"{match!r} in: {lines[line - 1].strip()}")
