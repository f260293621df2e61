"""Reads the tables of one schema from a source's catalog: columns, keys and references.

Declared keys come first. Missing ones are guessed from names: a table's key is its `id` or
`customer_id`, and `orders.customer_id` refers to the one table whose key it can be.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyarrow import types
from sqlglot import exp

from penstock.graphs.mappings.naming import singular
from penstock.kit.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    from penstock.sources.contract import Key, Source, Table

MAX_TABLES = 200
_DEFAULT_SCHEMAS = ("public", "main", "default", "dbo")
_GENERIC_NAMES = frozenset({"id", "key", "code", "name", "uuid", "no", "number"})
_SHOWN = 20
_QUALIFIED = {"duckdb": 3, "trino": 3, "bigquery": 3, "postgres": 2, "mysql": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which tables to read: by default all except views, of the only or the default schema."""

    catalog: str | None = None
    schema: str | None = None
    tables: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A reference to another table; `declared` if the source enforces it as a foreign key."""

    columns: tuple[str, ...]
    table: str
    referenced: tuple[str, ...]
    declared: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    name: str
    place: exp.Table
    columns: pa.Schema
    key: tuple[str, ...] = ()
    key_declared: bool = False
    links: tuple[Link, ...] = ()


async def survey(source: Source, source_type: str, scope: Scope) -> list[TableFacts]:
    tables = _selected(await source.catalog.tables(), scope)
    keys = await source.catalog.keys(tables[0].catalog, tables[0].schema)
    facts_list = []
    for table in tables:
        place = _place(table, source_type)
        query = exp.select("*").from_(place.copy()).sql(dialect=source.dialect)
        declared = [key for key in keys if key.table == table.name]
        facts_list.append(_facts(table, place, await source.schema(query), declared))
    keyed = [
        facts if facts.key else replace(facts, key=_guessed_key(facts)) for facts in facts_list
    ]
    return [replace(facts, links=(*facts.links, *_guessed_links(facts, keyed))) for facts in keyed]


def _selected(tables: Sequence[Table], scope: Scope) -> list[Table]:
    place = _schema(tables, scope)
    here = [table for table in tables if (table.catalog, table.schema) == place]
    if scope.tables is None:
        here = [table for table in here if "view" not in table.kind]
    else:
        here = [_by_name(here, name) for name in dict.fromkeys(scope.tables)]
    if not here:
        raise NotFound(f"There are no tables in {'.'.join(place)}.")
    if len(here) > MAX_TABLES:
        raise InvalidInput(
            f"{'.'.join(place)} has {len(here)} tables; the maximum is {MAX_TABLES}.",
            hint="Name the tables to use: tables.",
        )
    return here


def _by_name(tables: Sequence[Table], name: str) -> Table:
    alike = [table for table in tables if table.name == name] or [
        t for t in tables if t.name.lower() == name.lower()
    ]
    if not alike:
        raise NotFound(f"There is no table {name[:200]!r} in this schema.")
    return alike[0]


def _schema(tables: Iterable[Table], scope: Scope) -> tuple[str, str]:
    schemas = dict.fromkeys((table.catalog, table.schema) for table in tables)
    matching = [
        (catalog, schema)
        for catalog, schema in schemas
        if scope.catalog in (None, catalog) and scope.schema in (None, schema)
    ]
    defaults = [place for place in matching if place[1] in _DEFAULT_SCHEMAS]
    match matching, defaults:
        case ([only], _) | (_, [only]):
            return only
        case [], _:
            raise NotFound("There is no such schema in this source, or it has no tables.")
    raise InvalidInput(
        f"There are {len(matching)} schemas to choose from.",
        hint="Name one: schema, and catalog if there are several.",
        schemas=[".".join(place) for place in matching[:_SHOWN]],
    )


def _place(table: Table, source_type: str) -> exp.Table:
    """The table's name, qualified as the source type requires."""
    parts = (table.name, table.schema, table.catalog)[: _QUALIFIED.get(source_type, 1)]
    names = dict(
        zip(
            ("this", "db", "catalog"),
            (exp.to_identifier(part, quoted=True) for part in parts),
            strict=False,
        )
    )
    return exp.Table(**names)


def _facts(table: Table, place: exp.Table, columns: pa.Schema, keys: Sequence[Key]) -> TableFacts:
    primary = next((key.columns for key in keys if key.references is None), ())
    links = (
        Link(columns=key.columns, table=key.references, referenced=key.referenced_columns)
        for key in keys
        if key.references is not None
    )
    return TableFacts(
        name=table.name,
        place=place,
        columns=columns,
        key=primary,
        key_declared=bool(primary),
        links=tuple(links),
    )


def _guessed_key(facts: TableFacts) -> tuple[str, ...]:
    one = singular(facts.name).lower()
    defaults = ("id", f"{one}_id", f"{facts.name.lower()}_id", f"{one}id", "uuid", f"{one}_key")
    names = {name.lower(): name for name in facts.columns.names}
    column = next((names[name] for name in defaults if name in names), None)
    return () if column is None else (column,)


def _guessed_links(facts: TableFacts, tables: Sequence[TableFacts]) -> Iterator[Link]:
    """Undeclared references: a column whose name fits the key of exactly one table."""
    declared = {column for link in facts.links for column in link.columns} | (
        {facts.key[0]} if len(facts.key) == 1 else set()
    )
    times = Counter(other.key[0].lower() for other in tables if len(other.key) == 1)
    for column in facts.columns.names:
        if column in declared:
            continue
        candidates = [
            other
            for other in tables
            if len(other.key) == 1 and _may_refer(facts, column, other, times)
        ]
        if len(candidates) == 1:
            yield Link(
                columns=(column,),
                table=candidates[0].name,
                referenced=candidates[0].key,
                declared=False,
            )


def _may_refer(facts: TableFacts, column: str, other: TableFacts, times: Counter[str]) -> bool:
    key, name = other.key[0].lower(), column.lower()
    one, many = singular(other.name).lower(), other.name.lower()
    spellings = {f"{one}_{key}", f"{many}_{key}", f"{one}{key}", f"{one}_id"}
    same_word = (
        name == key and key not in _GENERIC_NAMES and times[key] == 1 and other.name != facts.name
    )
    return (same_word or name in spellings) and _comparable(
        facts.columns.field(column).type, other.columns.field(other.key[0]).type
    )


def _comparable(one: pa.DataType, other: pa.DataType) -> bool:
    return bool(one == other or (types.is_integer(one) and types.is_integer(other)))
