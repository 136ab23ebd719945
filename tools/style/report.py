"""The result of a check: which findings are errors, as text and as JSON."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tools.style import names, prose
from tools.style.findings import Finding, is_below
from tools.style.settings import Settings

COMMAND = "python -m tools.style"
PROSE = frozenset(rule.name for rule in prose.RULES)
RULES = (*prose.RULES, *names.RULES)
_AREAS = ("src", "docs", "other")


class Report(NamedTuple):
    """Findings of a check, those of them that are errors, and the number of words an area has."""

    findings: Sequence[Finding]
    errors: Sequence[Finding]
    words: Mapping[str, int]
    over: Sequence[str]

    @property
    def is_clean(self) -> bool:
        """Whether the check passes."""
        return not self.errors and not self.over


def make_report(
    findings: Sequence[Finding], words: Mapping[str, int], settings: Settings, is_strict: bool
) -> Report:
    """Return the report; `is_strict` turns names into errors, and prose above the limit."""

    def is_error(each: Finding) -> bool:
        if each.rule in settings.errors:
            return True
        if each.rule in PROSE:
            return is_below(each.path, settings.finished)
        return is_strict

    counts = _counts(findings)
    over = [
        f"{name}: {_rate(counts[name, area], words[area]):.2f} per 1,000 words in {area}, "
        f"limit {prose.LIMIT_PER_1000_WORDS}"
        for name in sorted(PROSE)
        for area in words
        if _rate(counts[name, area], words[area]) > prose.LIMIT_PER_1000_WORDS
    ]
    return Report(findings, list(filter(is_error, findings)), words, over if is_strict else [])


def _counts(findings: Sequence[Finding]) -> Counter[tuple[str, str]]:
    return Counter((each.rule, prose.area_of(each.path)) for each in findings)


def _rate(count: int, words: int) -> float:
    return 1000 * count / words if words else 0.0


def as_lines(findings: Sequence[Finding]) -> Iterator[str]:
    """Yield a line for each finding, as editors and terminals link them."""
    for each in findings:
        yield f"{each.path}:{each.line}: {each.rule}: {each.text}"


def as_text(report: Report) -> Iterator[str]:
    """Yield the errors, then a summary line for each rule with findings."""
    yield from (f"error: {line}" for line in as_lines(report.errors))
    yield from (f"error: {line}" for line in report.over)
    counts, words = _counts(report.findings), report.words
    areas = [area for area in _AREAS if words.get(area)]
    totals = ", ".join(f"{words[area]:,} words in {area}" for area in areas)
    yield f"style: {totals or 'no words'}; {len(report.errors) + len(report.over)} errors"
    if not report.findings:
        return
    rates = "".join(f"{f'in {area}':>9}" for area in areas)
    yield f"  {'warnings':14}{'count':>7}{rates}  per 1,000 words; list them: {COMMAND} --list RULE"
    for rule in RULES:
        total = sum(count for (name, _), count in counts.items() if name == rule.name)
        if total:
            cells = [
                f"{_rate(counts[rule.name, area], words[area]):9.2f}"
                if rule.name in PROSE
                else " " * 9
                for area in areas
            ]
            yield f"  {rule.name:14}{total:7}{''.join(cells)}  {rule.advice}"


def as_json(report: Report) -> str:
    """Return the report as a JSON object."""
    counts = _counts(report.findings)
    rules = [
        {
            "rule": rule.name,
            "advice": rule.advice,
            "count": sum(1 for each in report.findings if each.rule == rule.name),
            "per_1000_words": {
                area: round(_rate(counts[rule.name, area], count), 3)
                for area, count in report.words.items()
                if rule.name in PROSE
            },
        }
        for rule in RULES
    ]
    errors = set(report.errors)
    findings = [{**each._asdict(), "is_error": each in errors} for each in report.findings]
    page = {"words": dict(report.words), "rules": rules, "over_limit": list(report.over)}
    return json.dumps({**page, "findings": findings}, indent=2, ensure_ascii=False)
