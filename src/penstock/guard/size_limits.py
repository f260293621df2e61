"""Checks on SQL tokens before parsing: size, nesting depth and the first word.

The parser recurses with every bracket and has no limit of its own, so depth is counted on tokens
first. After a type name (`ARRAY[`, `DATE(`) it tries up to three parses, so each such nested level
multiplies its time: `effort` is that product, summed over the tokens. Comments are removed: the
parser interprets some of them, and the SQL that runs has none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, TypedDict

from sqlglot import Token, TokenError, TokenType

from penstock.guard.errors import SqlRefused, SqlTooLarge, SqlUnreadable, StatementRefused

if TYPE_CHECKING:
    from sqlglot import exp

    from penstock.guard.grammar import Grammar

_BEGINNINGS = {
    TokenType.SELECT,
    TokenType.WITH,
    TokenType.L_PAREN,
    TokenType.VALUES,
    TokenType.FROM,
    TokenType.TABLE,
}
_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]")
_EXECUTABLE_COMMENTS = ("!", "M!")


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlLimits:
    """`depth` counts nested brackets, `tables` every reference; 150,000 `effort` take about a
    second, 10,000 `tokens` a third of one."""

    length: int = 100_000
    tokens: int = 10_000
    depth: int = 32
    effort: int = 100_000
    tables: int = 100


def read(sql: str, grammar: Grammar, limits: SqlLimits) -> list[Token]:
    """The statement's tokens without comments, if its size and first word allow parsing it."""
    _check_text(sql, limits)
    try:
        tokens = grammar.tokenize(sql)
    except TokenError as error:
        raise SqlUnreadable(
            "The SQL cannot be parsed: a quote or comment is not closed."
        ) from error
    if len(tokens) > limits.tokens:
        raise SqlTooLarge(f"The SQL has {len(tokens)} tokens; at most {limits.tokens} are allowed.")
    _check_depth(tokens, grammar, limits)
    for token in tokens:
        _drop_comments(token)
    _check_beginning(tokens)
    _check_words(tokens, grammar.name)
    return tokens


class Place(TypedDict, total=False):
    """Where in the SQL it is, counted from 1."""

    line: int
    column: int


def place(token: Token) -> Place:
    """The position of a token, counted from 1, for an error's details."""
    return {"line": token.line, "column": token.col - (token.end - token.start)}


def place_of(node: exp.Expr) -> Place:
    """The position of a node, if the parser recorded it."""
    meta = {key: value for key, value in node.meta.items() if value is not None}
    if not {"line", "col", "start", "end"} <= meta.keys():
        return {}
    return {"line": meta["line"], "column": meta["col"] - (meta["end"] - meta["start"])}


def _check_text(sql: str, limits: SqlLimits) -> None:
    if len(sql) > limits.length:
        raise SqlTooLarge(
            f"The SQL has {len(sql)} characters; at most {limits.length} are allowed."
        )
    if control := _CONTROL.search(sql):
        raise SqlUnreadable(
            f"The SQL has a control character (U+{ord(control[0]):04X})"
            f" at position {control.start() + 1}."
        )


def _check_depth(tokens: list[Token], grammar: Grammar, limits: SqlLimits) -> None:
    open_brackets: list[bool] = []
    subscripts = effort = 0
    for before, token in pairwise([Token(TokenType.SENTINEL, ""), *tokens]):
        if token.token_type in _OPENING:
            open_brackets.append(before.token_type in grammar.parser.TYPE_TOKENS)
        elif token.token_type in _CLOSING:
            del open_brackets[-1:]
        if token.token_type == TokenType.L_BRACKET:
            subscripts = subscripts + 1 if before.token_type == TokenType.R_BRACKET else 1
        effort += 3 ** sum(open_brackets)
        if max(len(open_brackets), subscripts) > limits.depth or effort > limits.effort:
            raise SqlTooLarge(
                f"The SQL is nested too deeply; at most {limits.depth} levels are allowed, fewer of"
                " arrays and structs.",
                hint="Move inner parts into WITH clauses.",
                **place(token),
            )


def _drop_comments(token: Token) -> None:
    if any(comment.startswith(_EXECUTABLE_COMMENTS) for comment in token.comments):
        raise SqlRefused(
            "Executable comments (/*! … */) are not allowed.", hint="Remove them.", **place(token)
        )
    token.comments = []


def _check_beginning(tokens: list[Token]) -> None:
    if not tokens:
        raise SqlUnreadable("The SQL is empty.", hint="Write one SELECT statement.")
    first = tokens[0]
    if first.token_type not in _BEGINNINGS:
        raise StatementRefused(
            f"{first.text.upper()[:40]} is not allowed here.",
            hint="Write one SELECT statement; it may begin with WITH.",
            **place(first),
        )


def _check_words(tokens: list[Token], dialect: str) -> None:
    for before, token in pairwise(tokens):
        if token.token_type == TokenType.INTO:
            raise StatementRefused(
                "SELECT … INTO is not allowed here: a query only reads.", **place(token)
            )
        if dialect == "trino" and (before.token_type, token.token_type) == (
            TokenType.DECIMAL,
            TokenType.STRING,
        ):
            raise SqlRefused(
                f"The literal DECIMAL '{token.text[:40]}' would lose its scale.",
                hint="Write the number as it is (1.25), or CAST('1.25' AS DECIMAL(3, 2)).",
                **place(before),
            )
