"""Checks of SQL that need no Spark, which takes long to start.

Spark decides on validity. These checks refuse only text that Spark certainly refuses, too:
quotes, comments and parentheses without an end, a misspelled first word, more than one query, and
tables that do not exist. The tokens are those of Spark's lexer.
"""

import difflib
import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from weft.errors import BadOption, shortened

_TOKEN = re.compile(
    r"""
      (?P<space>\s+ | --(?:\\\n|[^\r\n])*)
    | (?P<string>[rR]'[^']*' | [rR]"[^"]*" | '(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*")
    | (?P<quoted>`(?:[^`]|``)*`)
    | (?P<word>\w+)
    | (?P<opening>/\*)
    | (?P<unclosed>['"`])
    | (?P<symbol>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_PART = re.compile(r"/\*|\*/")
# Dollar-quoted strings and tables that are URLs are rare and have other tokens.
_UNCERTAIN = re.compile(r"\$\w*\$|\w://")

_QUERY_WORDS = ("SELECT", "WITH", "FROM", "VALUES", "TABLE")
# Similarity to a keyword above which a first word is a misspelling of it.
_NEAR = 0.75
# Between FROM or JOIN and a table, or after a table, these are not names.
_NO_NAMES = re.compile(
    r"ANTI|AS|ASC|ASOF|CLUSTER|CROSS|DESC|DISTRIBUTE|EXCEPT|FROM|FULL|GROUP|HAVING|IDENTIFIER"
    r"|INNER|INSERT|INTERSECT|JOIN|LATERAL|LEFT|LIMIT|MAP|MINUS|NATURAL|OFFSET|ON|ONLY|ORDER"
    r"|OUTER|PIVOT|REDUCE|RIGHT|SELECT|SEMI|SORT|STREAM|TABLE|TABLESAMPLE|UNION|UNPIVOT|USING"
    r"|VALUES|WHERE|WINDOW|WITH",
    re.IGNORECASE,
)
_SET_OPERATORS = ("UNION", "EXCEPT", "INTERSECT", "MINUS")
# After a name these mean that it is not a table: a part of a name, a function, a version.
_NO_TABLES_BEFORE = (".", "(", "-", "@", ":")


class TokenKind(StrEnum):
    """Kind of a token."""

    WORD = "word"
    QUOTED = "quoted"
    STRING = "string"
    SYMBOL = "symbol"
    # Quote or comment without an end.
    UNCLOSED = "unclosed"


class Token(NamedTuple):
    """A token and its offset."""

    kind: TokenKind
    text: str
    at: int

    @property
    def keyword(self) -> str:
        """Upper-case text of a word or symbol; empty for other tokens."""
        return self.text.upper() if self.kind in (TokenKind.WORD, TokenKind.SYMBOL) else ""

    @property
    def is_name(self) -> bool:
        """Whether the token may be the name of a table."""
        return self.kind == TokenKind.QUOTED or (
            self.kind == TokenKind.WORD
            and _NO_NAMES.fullmatch(self.text) is None
            and not self.text.isdecimal()
        )

    @property
    def name(self) -> str:
        """Name without quotes."""
        if self.kind == TokenKind.QUOTED:
            return self.text[1:-1].replace("``", "`")
        return self.text


_END = Token(TokenKind.SYMBOL, "", -1)


def check_statement(text: str) -> None:
    """Refuse a statement that Spark certainly cannot parse.

    Raises:
        BadOption: Invalid statement; the text has the line and column.
    """
    tokens = _tokens_of(text)
    if not tokens:
        raise BadOption("the query is empty")
    if _UNCERTAIN.search(text) is not None:
        return
    last = tokens[-1]
    is_query = _is_query(tokens)
    if last.kind == TokenKind.UNCLOSED and (is_query or last.text == "/*"):
        raise BadOption(f"{last.text} at {_place(text, last)} has no end")
    if is_query:
        _check_parentheses(text, tokens)
    else:
        _check_first_word(tokens)


def unknown_tables(text: str, services: Iterable[str]) -> list[str]:
    """Return the tables that a query certainly reads and that are not services, as written.

    Omits names that may be columns, functions, parts of a longer name or subqueries.
    """
    tokens = _tokens_of(text)
    words = {each.keyword for each in tokens}
    if not _is_query(tokens) or words & {"RECURSION", "BEGIN"} or _UNCERTAIN.search(text):
        return []
    known = {*(service.lower() for service in services), *_names_of_subqueries(tokens)}
    found = _Tables(tokens)
    names = [] if found.is_uncertain else dict.fromkeys(found.names)
    return [name for name in names if name.lower() not in known]


def _is_query(tokens: list[Token]) -> bool:
    return bool(tokens) and (tokens[0].keyword == "(" or tokens[0].keyword in _QUERY_WORDS)


class _Level:
    """State inside a pair of parentheses, up to a token."""

    def __init__(self, *, is_query: bool) -> None:
        self.is_query = is_query
        self.has_from = False


class _Tables:
    """Names after FROM and JOIN, and after the commas that follow such names."""

    def __init__(self, tokens: list[Token]) -> None:
        self.names: list[str] = []
        # One of the words FROM must be the name of a column.
        self.is_uncertain = False
        self._tokens = tokens
        levels = [_Level(is_query=True)]
        for number, token in enumerate(tokens):
            keyword = token.keyword
            if keyword == "(":
                is_query = self._at(number + 1).keyword in ("SELECT", "WITH", "FROM")
                levels.append(_Level(is_query=is_query))
            elif keyword == ")" and len(levels) > 1:
                levels.pop()
            elif keyword in _SET_OPERATORS:
                levels[-1].has_from = False
            elif keyword in ("FROM", "JOIN") and levels[-1].is_query:
                self._clause(number, levels[-1])

    def _at(self, number: int) -> Token:
        return self._tokens[number] if 0 <= number < len(self._tokens) else _END

    def _clause(self, number: int, level: _Level) -> None:
        """Read a FROM or JOIN clause; the word may be a column, or part of an expression."""
        if self._at(number - 1).keyword in (".", "DISTINCT"):
            return
        if self._tokens[number].keyword == "FROM":
            self.is_uncertain = self.is_uncertain or level.has_from
            level.has_from = True
        elif not level.has_from:
            return
        self._read(number + 1)

    def _read(self, number: int) -> None:
        """Read a list of tables, separated by commas."""
        while self._at(number).is_name:
            after = self._at(number + 1).keyword
            if after in _NO_TABLES_BEFORE:
                return
            self.names.append(self._tokens[number].name)
            number += 2 if after == "AS" else 1
            if self._at(number).is_name:
                number += 1
            if self._at(number).keyword != ",":
                return
            number += 1


def _names_of_subqueries(tokens: list[Token]) -> set[str]:
    """Return possible names of subqueries: before AS and a parenthesis, or after WITH."""
    names = set()
    opened: list[int] = []
    # For each closing parenthesis, the token before its opening one.
    before: dict[int, int] = {}
    for number, token in enumerate(tokens):
        if token.keyword == "(":
            opened.append(number)
        elif token.keyword == ")" and opened:
            before[number] = opened.pop() - 1
        elif token.keyword == "AS" and number + 1 < len(tokens) and number:
            if tokens[number + 1].keyword == "(":
                named = before.get(number - 1, number - 1)
                names.add(tokens[max(named, 0)].name.lower())
        elif number and tokens[number - 1].keyword in ("WITH", "RECURSIVE"):
            names.add(token.name.lower())
    return names


def _tokens_of(text: str) -> list[Token]:
    """Return the tokens of a text up to the first one without an end."""
    tokens: list[Token] = []
    at = 0
    while found := _TOKEN.match(text, at):
        kind = found.lastgroup
        at = found.end()
        if kind == "opening":
            at = _end_of_comment(text, found.start())
            if at < 0:
                kind = TokenKind.UNCLOSED
        if kind not in ("space", "opening"):
            tokens.append(Token(TokenKind(str(kind)), found[0], found.start()))
        if kind == TokenKind.UNCLOSED:
            break
    return tokens


def _end_of_comment(text: str, at: int) -> int:
    """Return the end of a comment, which may be nested, or of a hint; -1 without one."""
    if text.startswith("/*+", at):
        end = text.find("*/", at)
        return end + 2 if end >= 0 else -1
    depth = 0
    for part in _COMMENT_PART.finditer(text, at):
        depth += 1 if part[0] == "/*" else -1
        if not depth:
            return part.end()
    return -1


def _check_first_word(tokens: list[Token]) -> None:
    is_label = len(tokens) > 1 and tokens[1].keyword == ":"
    if tokens[0].kind != TokenKind.WORD or is_label:
        return
    near = difflib.get_close_matches(tokens[0].keyword, _QUERY_WORDS, 1, _NEAR)
    if near:
        shown = shortened(tokens[0].text)
        raise BadOption(f"a query cannot begin with {shown}; did you mean {near[0]}?")


def _check_parentheses(text: str, tokens: Sequence[Token]) -> None:
    opened: list[Token] = []
    end: Token | None = None
    for token in tokens:
        if end is not None and token.keyword != ";":
            raise BadOption(f"one query at a time: there is another at {_place(text, token)}")
        if token.keyword == ";":
            end = token
        elif token.keyword == "(":
            opened.append(token)
        elif token.keyword == ")":
            if not opened:
                raise BadOption(f") at {_place(text, token)} closes nothing")
            opened.pop()
    if opened:
        raise BadOption(f"( at {_place(text, opened[-1])} has no end")


def _place(text: str, token: Token) -> str:
    before = text[: token.at]
    column = token.at - (before.rfind("\n") + 1) + 1
    return f"line {before.count(chr(10)) + 1}, column {column}"
