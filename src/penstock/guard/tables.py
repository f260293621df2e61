"""Finds the tables that a query reads, and checks them against a policy.

A name is a table unless a WITH that is in scope there defines it; where engines differ (a forward
reference, or one in the anchor under RECURSIVE) it counts as a table, so that a WITH cannot hide a
real table.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from operator import is_not
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.guard.errors import TableRefused
from penstock.guard.size_limits import place_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_PLAIN = re.compile(r"[^\W\d](?:[\w $-]*[\w$])?|\d[\w$-]*")
_CASE_SENSITIVE_TABLES = {"bigquery", "mysql", "postgres"}
_CASE_SENSITIVE_WITH = {"mysql", "postgres"}
_SHAPE = (
    "Use [catalog.][schema.]name for a table of the source; files, URLs, links and wildcards are"
    " not tables."
)

_SYSTEM_QUALIFIERS = {
    "duckdb": {"information_schema", "pg_catalog", "system", "temp"},
    "postgres": {"information_schema"},
    "trino": {"information_schema", "jmx", "system"},
    "mysql": {"information_schema", "mysql", "ndbinfo", "performance_schema", "sys"},
    "bigquery": {"information_schema"},
}
_SYSTEM_PREFIXES = {
    "duckdb": ("duckdb_", "pg_", "pragma_", "sqlite_", "__"),
    "postgres": ("pg_",),
    "trino": (),
    "mysql": (),
    "bigquery": ("__",),
}
# DuckDB reads `a.csv` as a file if there is no such table.
_FILE_ENDINGS = frozenset(
    """arrow avro bz2 csv db ddb duckdb feather geojson geoparquet gz ipc json jsonl ndjson orc
    parquet pq shp sqlite tsv txt vortex xls xlsx xml zip zst""".split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableName:
    catalog: str | None = None
    schema: str | None = None
    name: str

    def __str__(self) -> str:
        return ".".join(part for part in (self.catalog, self.schema, self.name) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePolicy:
    """The tables that a query may read; by default all but system tables.

    `allowed` has full names, in lower case where the dialect is case-insensitive: build it with
    `of`.
    """

    allowed: frozenset[TableName] | None = None
    default_catalog: str | None = None
    default_schema: str | None = None
    system: bool = False

    @classmethod
    def of(
        cls,
        dialect: str,
        tables: Iterable[TableName],
        *,
        default_catalog: str | None = None,
        default_schema: str | None = None,
    ) -> TablePolicy:
        """A policy that allows only these tables, by full name."""
        allowed = frozenset(_folded(table, dialect) for table in tables)
        return cls(allowed=allowed, default_catalog=default_catalog, default_schema=default_schema)

    def permits(self, table: TableName, dialect: str) -> bool:
        catalog, schema = table.catalog or self.default_catalog, table.schema or self.default_schema
        full = TableName(catalog=catalog, schema=schema, name=table.name)
        return self.allowed is None or _folded(full, dialect) in self.allowed


def _folded(table: TableName, dialect: str) -> TableName:
    fold = str if dialect in _CASE_SENSITIVE_TABLES else str.lower
    return TableName(
        catalog=table.catalog and fold(table.catalog),
        schema=table.schema and fold(table.schema),
        name=fold(table.name),
    )


def read_tables(tree: exp.Expr, dialect: str, policy: TablePolicy) -> tuple[TableName, ...]:
    """The tables in the order of first use; raises for the first that is not allowed."""
    tables: dict[TableName, None] = {}
    for node in tree.find_all(exp.Table, bfs=False):
        if not _is_call(node) and not _is_defined(node, dialect):
            table = _table_name(node)
            _check_shape(table, dialect, node)
            if not policy.system:
                _check_system(table, dialect, node)
            _check_policy(table, dialect, policy, node)
            tables[table] = None
    return tuple(tables)


def _is_call(node: exp.Table) -> bool:
    return isinstance(node.this, exp.Func) or bool(node.args.get("rows_from"))


def _table_name(node: exp.Table) -> TableName:
    if not isinstance(node.this, exp.Identifier):
        raise _refused(node, f"{node.sql()[:200]} has too many parts for a table name.", _SHAPE)
    return TableName(catalog=node.catalog or None, schema=node.db or None, name=node.name)


def _parts(table: TableName) -> list[str]:
    return [*filter(None, (table.catalog, table.schema)), table.name]


def _refused(node: exp.Table, message: str, hint: str) -> TableRefused:
    return TableRefused(message, hint=hint, **place_of(node.this))


def _check_shape(table: TableName, dialect: str, node: exp.Table) -> None:
    dollar = dialect == "trino" and "$" in table.name
    file = dialect == "duckdb" and bool(table.schema) and table.name.lower() in _FILE_ENDINGS
    if dollar or file or not all(_PLAIN.fullmatch(part) for part in _parts(table)):
        raise _refused(node, f"{str(table)[:200]!r} is not a table name.", _SHAPE)


def _check_system(table: TableName, dialect: str, node: exp.Table) -> None:
    *qualifiers, name = map(_unaccented, _parts(table))
    prefixes = _SYSTEM_PREFIXES[dialect]
    hidden = dialect == "postgres" and any(part.startswith("pg_") for part in qualifiers)
    if (
        hidden
        or name.startswith(prefixes)
        or not _SYSTEM_QUALIFIERS[dialect].isdisjoint(qualifiers)
    ):
        raise _refused(
            node,
            f"{str(table)[:200]} is a system table.",
            "Use the schema browser to see what the source has.",
        )


def _unaccented(name: str) -> str:
    """The name as a lenient engine may compare it: some take `İ`, `ı` and `ſ` for letters of
    `information_schema`."""
    decomposed = unicodedata.normalize("NFKD", name).casefold().replace("ı", "i")
    return "".join(character for character in decomposed if not unicodedata.combining(character))


def _check_policy(table: TableName, dialect: str, policy: TablePolicy, node: exp.Table) -> None:
    if not policy.permits(table, dialect):
        raise _refused(
            node,
            f"Table {str(table)[:200]} is not in the source's catalog.",
            "Check its name and schema.",
        )


def _is_defined(node: exp.Table, dialect: str) -> bool:
    if node.args.get("db"):
        return False
    fold = str if dialect in _CASE_SENSITIVE_WITH else str.lower
    return fold(node.name) in {fold(name) for name in _names_in_scope(node)}


def _names_in_scope(node: exp.Table) -> Iterator[str]:
    child: exp.Expr = node
    while parent := child.parent:
        if isinstance(parent, exp.With) and isinstance(child, exp.CTE):
            yield from (cte.alias for cte in takewhile(partial(is_not, child), parent.expressions))
            if parent.recursive and _in_recursive_term(node, child):
                yield child.alias
        clause = parent.args.get("with_")
        if clause is not None and clause is not child:
            yield from (cte.alias for cte in clause.expressions)
        child = parent


def _in_recursive_term(node: exp.Expr, cte: exp.CTE) -> bool:
    body = cte.this
    if not isinstance(body, exp.SetOperation):
        return False
    child: exp.Expr = node
    while child.parent is not None and child.parent is not body:
        child = child.parent
    return child.parent is body and child is body.expression
