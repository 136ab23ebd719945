"""Check prose and names against STYLE.md.

Prints one line for each rule with findings: their number, how often they occur in 1,000 words, and
the command that lists them. Findings are warnings. They are errors in files that pyproject.toml
lists in `[tool.weft-style] finished` (rules of prose) and for rules that it lists in `errors`.

Exit status: 0 without errors, 1 with errors, 2 for wrong usage or settings.
"""

import argparse
import contextlib
import gc
import os
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from tools.style import names, prose
from tools.style.findings import Finding, is_below
from tools.style.report import COMMAND, RULES, as_json, as_lines, as_text, make_report
from tools.style.settings import BadSettings, Settings, load
from tools.style.sources import read_sources

_NAMES = tuple(rule.name for rule in RULES)
_WIDTH = max(map(len, _NAMES)) + 2


def main(arguments: Sequence[str]) -> int:
    """Run the check and return its exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    root = Path(options.root).resolve()
    try:
        settings = load(root, _NAMES)
        paths = tuple(_relative(root, each) for each in options.paths)
    except (BadSettings, ValueError) as error:
        parser.error(str(error))
    words = Counter[str]()
    findings = find(root, settings, paths, words)
    report = make_report(findings, words, settings, options.strict)
    if options.json:
        print(as_json(report))
    elif options.list:
        wanted = _NAMES if options.list == "all" else (options.list,)
        _print(as_lines([each for each in findings if each.rule in wanted]))
    else:
        _print(as_text(report))
    return 0 if report.is_clean else 1


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)


def find(
    root: Path, settings: Settings, paths: tuple[str, ...], words: Counter[str]
) -> list[Finding]:
    """Return every finding, in order of paths and lines; of some paths only, if there are any."""
    sources = list(read_sources(root, (*settings.finished, *paths)))
    chosen = [each for each in sources if not paths or is_below(each[0], paths)]
    found = [*prose.check(chosen, words), *names.check(sources)]
    return sorted(each for each in found if not paths or is_below(each.path, paths))


def _relative(root: Path, path: str) -> str:
    """Return a path of the command line relative to the root.

    Raises:
        ValueError: The path does not exist or is not below the root.
    """
    full = Path(path).resolve()
    if not full.exists():
        raise ValueError(f"{path} does not exist")
    return full.relative_to(root).as_posix()


def _parser() -> argparse.ArgumentParser:
    rules = "\n".join(f"  {rule.name:{_WIDTH}}{rule.advice}" for rule in RULES)
    parser = argparse.ArgumentParser(
        prog=COMMAND,
        description=__doc__,
        epilog=f"rules:\n{rules}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "paths", nargs="*", metavar="PATH", help="check only this file or folder (default: all)"
    )
    parser.add_argument(
        "--list",
        nargs="?",
        const="all",
        choices=("all", *_NAMES),
        metavar="RULE",
        help="list every finding of RULE as PATH:LINE: RULE: TEXT (default: of all rules)",
    )
    parser.add_argument("--json", action="store_true", help="print the whole report as JSON")
    parser.add_argument(
        "--strict",
        action="store_true",
        help="make findings errors; prose: rules over "
        f"{prose.LIMIT_PER_1000_WORDS} findings per 1,000 words",
    )
    parser.add_argument(
        "--root", default=".", metavar="FOLDER", help="folder of the project (default: this one)"
    )
    return parser


if __name__ == "__main__":
    # The collector would walk every syntax tree again and again, and none has cycles.
    gc.disable()
    # A reader such as head may close the pipe early.
    with contextlib.suppress(BrokenPipeError):
        status = main(sys.argv[1:])
        sys.stdout.flush()
        sys.exit(status)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(1)
