"""Parse a source's SQL into an index, columns and a condition."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.tokenizer_core import TokenType

from penstock.sources import single_table
from penstock.sources.batch_checks import distinct
from penstock.sources.errors import SourceQueryError

if TYPE_CHECKING:
    from penstock.sources.elasticsearch.mapping import Field, Fields

# Elasticsearch quotes as Trino does, and the guard knows that dialect.
DIALECT = "trino"
_INDEX = re.compile(r"""[^\s"'()\\/?#;_][^\s"'()\\/?#;]*""")
_HINT = "Write SELECT columns FROM index [WHERE condition], or the name of an index."


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """`selected` are pairs of column name and field path; None stands for `*`."""

    index: str
    selected: tuple[tuple[str, str] | None, ...]
    translatable: str | None = None
    """A query of all columns with the same condition, for `/_sql/translate`; None without a
    condition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    name: str
    field: Field


def read_query(sql: str) -> Query:
    if _INDEX.fullmatch(sql.strip()):
        return Query(index=_checked(sql.strip()), selected=(None,))
    tree, one = single_table.parse(sql, DIALECT), single_table.one_table(sql, DIALECT)
    table = tree.find(exp.Table) if tree is not None else None
    if tree is None or one is None or table is None or table.args.get("db"):
        raise SourceQueryError("Elasticsearch sources do not support this query.", hint=_HINT)
    names = {table.name, table.alias_or_name}
    return Query(
        index=_checked(table.name),
        selected=tuple(_selected(expression, names) for expression in tree.expressions),
        translatable=_everything(one.text) if tree.args.get("where") else None,
    )


def columns_of(query: Query, fields: Fields) -> list[Column]:
    columns: list[Column] = []
    for pair in query.selected:
        pairs = [(path, path) for path in fields.top] if pair is None else [pair]
        columns += [Column(name=name, field=fields.named(path)) for name, path in pairs]
    distinct([column.name for column in columns])
    return columns


def schema_of(columns: list[Column]) -> pa.Schema:
    return pa.schema([(column.name, column.field.arrow) for column in columns])


def _selected(expression: exp.Expression, names: set[str]) -> tuple[str, str] | None:
    inner = expression.this if isinstance(expression, exp.Alias) else expression
    if inner.is_star and isinstance(inner, exp.Star | exp.Column):
        return None
    if not isinstance(inner, exp.Column | exp.Dot):
        raise SourceQueryError(f"{inner.sql(DIALECT)} is not a field.", hint=_HINT)
    parts = [part.name for part in inner.parts]
    if len(parts) > 1 and parts[0] in names:
        parts = parts[1:]
    path = ".".join(parts)
    return (expression.alias if isinstance(expression, exp.Alias) else path), path


def _everything(sql: str) -> str:
    tokens = Dialect.get_or_raise(DIALECT).tokenize(sql)
    start = next(token.start for token in tokens if token.token_type == TokenType.FROM)
    return "SELECT * " + sql[start:]


def _checked(index: str) -> str:
    if index in (".", "..") or index.startswith(("_", "-")):
        raise SourceQueryError(f"{index} is not the name of an index.", hint=_HINT)
    return index
