"""Detect queries that read one table row by row, so that parts of the table give parts of the
result.

The SQL is not regenerated, because that would rename columns (`now()` is not named like
`CURRENT_TIMESTAMP`): a predicate, or another relation, is inserted at the positions where the
parser found the table and the WHERE.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot.tokenizer_core import Token

_CLAUSES = {"expressions", "from_", "where"}
_TABLE = {"alias", "catalog", "db", "this"}
_NOT_ROW_BY_ROW = (exp.AggFunc, exp.UDTF, exp.Window)


def trace_comment(trace: str) -> str:
    """A comment before a query that names its job, for who watches the server."""
    return f"/* penstock {trace.replace('*/', '').replace('/*', '')} */ " if trace else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OneTable:
    """`SELECT … FROM one_table [WHERE …]`. `functions` are unknown to the parser and may be
    aggregates."""

    text: str
    table: str
    alias: str
    functions: tuple[str, ...]
    _table_at: slice
    _condition_at: int | None

    def where(self, predicate: str) -> str:
        """The query with an additional condition."""
        if self._condition_at is None:
            return f"{self.text}\nWHERE {predicate}"
        head, condition = self.text[: self._condition_at], self.text[self._condition_at :]
        return f"{head} {predicate} AND ({condition}\n)"

    def reading(self, relation: str) -> OneTable:
        """The query over another relation with the same columns, under the same alias."""
        written = f"{relation} AS {self.alias}"
        longer = len(written) - (self._table_at.stop - self._table_at.start)
        return replace(
            self,
            text=self.text[: self._table_at.start] + written + self.text[self._table_at.stop :],
            table=relation,
            _table_at=slice(self._table_at.start, self._table_at.start + len(written)),
            _condition_at=None if self._condition_at is None else self._condition_at + longer,
        )


def parse(sql: str, dialect: str) -> exp.Query | None:
    """The query; None if there is not exactly one, or it cannot be parsed."""
    try:
        trees = [
            t
            for t in sqlglot.parse(sql, read=dialect)
            if t is not None and not isinstance(t, exp.Semicolon)
        ]
    except SqlglotError:
        return None
    return trees[0] if len(trees) == 1 and isinstance(trees[0], exp.Query) else None


def bare(sql: str, dialect: str) -> str:
    """The SQL without trailing semicolons and comments, for use in parentheses."""
    try:
        tokens = _tokens(sql, dialect)
    except SqlglotError:
        return sql
    return sql[: tokens[-1].end + 1] if tokens else sql


def one_table(sql: str, dialect: str) -> OneTable | None:
    tree = parse(sql, dialect)
    table = _only_table(tree) if tree is not None else None
    if tree is None or table is None:
        return None
    tokens = _tokens(sql, dialect)
    if tokens[0].token_type != TokenType.SELECT:
        return None
    names = [
        part
        for part in (table.args.get("catalog"), table.args.get("db"), table.this)
        if part is not None
    ]
    alias = table.args["alias"].this if table.args.get("alias") else table.this
    end = max(name.meta["end"] for name in (*names, alias))
    return OneTable(
        text=sql[: tokens[-1].end + 1],
        table=".".join(name.sql(dialect=dialect) for name in names),
        alias=alias.sql(dialect=dialect),
        functions=tuple(call.name.lower() for call in tree.find_all(exp.Anonymous)),
        _table_at=slice(names[0].meta["start"], end + 1),
        _condition_at=_condition(tokens),
    )


def _only_table(tree: exp.Query) -> exp.Table | None:
    plain = (
        isinstance(tree, exp.Select)
        and _present(tree) <= _CLAUSES
        and len(list(tree.find_all(exp.Query))) == 1
    )
    source = tree.args["from_"].this if plain and tree.args.get("from_") else None
    if (
        not isinstance(source, exp.Table)
        or not _present(source) <= _TABLE
        or tree.find(*_NOT_ROW_BY_ROW)
    ):
        return None
    aliased = source.args.get("alias")
    renamed = aliased is not None and bool(aliased.columns)
    return source if isinstance(source.this, exp.Identifier) and not renamed else None


def _present(node: exp.Expression) -> set[str]:
    return {name for name, value in node.args.items() if value}


def _tokens(sql: str, dialect: str) -> Sequence[Token]:
    tokens = Dialect.get_or_raise(dialect).tokenize(sql)
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens = tokens[:-1]
    return tokens


def _condition(tokens: Sequence[Token]) -> int | None:
    """The offset of the condition; without subqueries and aggregates there is at most one WHERE."""
    return next((token.end + 1 for token in tokens if token.token_type == TokenType.WHERE), None)
