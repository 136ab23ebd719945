import click
import pytest

from weft import errors
from weft.cli.errors import exit_code_of, sentence_of


def test_the_kind_of_an_error_comes_before_what_it_says() -> None:
    assert sentence_of(errors.NotKnown("nobody serves 'a'")) == "not known: nobody serves 'a'"
    assert sentence_of(errors.Unreachable("no gateway")) == "unreachable: no gateway"
    assert sentence_of(errors.FrameTooBig("of 9 bytes")) == "frame too big: of 9 bytes"


def test_an_error_without_words_is_still_a_sentence() -> None:
    assert sentence_of(errors.ConnectionLost()) == "connection lost: no more is known"


def test_what_a_peer_said_cannot_reach_the_terminal_raw() -> None:
    assert sentence_of(errors.Refused("no\x1b[2J\nno")) == "refused: no\\x1b[2J\\nno"


def test_a_wrong_command_line_says_where_help_is() -> None:
    context = click.Context(click.Command("pub"), info_name="weft pub")
    error = click.UsageError("No such option '--foo'.", context)
    assert sentence_of(error) == "no such option '--foo'; see 'weft pub --help'"
    assert sentence_of(click.UsageError("Missing.")) == "missing; see 'weft --help'"


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("--cnt", " (did you mean '--count'?)"),
        ("--jsn", " (did you mean '--json'?)"),
        ("--json-line", " (did you mean '--json-lines' or '--json'?)"),
        ("--c", ""),
        ("--colour", ""),
    ],
)
def test_only_what_is_near_is_proposed(given: str, hint: str) -> None:
    options = ["--ack", "--count", "--json", "--json-lines", "--rate"]
    error = click.NoSuchOption(given, possibilities=options)
    assert sentence_of(error) == f"no such option '{given}'{hint}; see 'weft --help'"


def test_a_command_that_is_near_is_proposed() -> None:
    error = click.exceptions.NoSuchCommand("pubb", possibilities=["pub", "sub", "top"])
    assert sentence_of(error) == ("no such command 'pubb' (did you mean 'pub'?); see 'weft --help'")


def test_an_error_of_the_system_names_its_file() -> None:
    assert sentence_of(FileNotFoundError(2, "No such file", "a.txt")) == "a.txt: No such file"
    assert sentence_of(OSError(24, "Too many open files")) == "Too many open files"


def test_anything_else_is_a_fault_of_ours() -> None:
    assert sentence_of(KeyError("x")).startswith("a fault in Weft itself: KeyError: 'x'")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (click.UsageError("x"), 2),
        (click.ClickException("x"), 1),
        (errors.BadSubject("x"), 2),
        (errors.BadField("x"), 2),
        (errors.BadOption("x"), 2),
        (errors.NotOpen("x"), 1),
        (errors.NotKnown("x"), 1),
        (errors.Unreachable("x"), 1),
        (errors.TimedOut("x"), 1),
        (RuntimeError("x"), 1),
    ],
)
def test_the_exit_code_tells_misuse_from_failure(error: Exception, code: int) -> None:
    assert exit_code_of(error) == code
