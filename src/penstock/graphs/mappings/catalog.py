"""What a source's catalogue says of the tables of one schema: their columns, their keys, and what
refers to what.

Declared keys come first. What is not declared is guessed from names: a table's key is its `id` or
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
_USUAL = ("public", "main", "default", "dbo")
_GENERIC = frozenset({"id", "key", "code", "name", "uuid", "no", "number"})
_SHOWN = 20
_QUALIFIED = {"duckdb": 3, "trino": 3, "bigquery": 3, "postgres": 2, "mysql": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which tables; without names all that are no views, without a schema the only one, or the
    usual one."""

    catalog: str | None = None
    schema: str | None = None
    tables: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Columns that hold another table's; `declared` where the source itself sees to it that the row
    is there."""

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
    tables = _chosen(await source.catalog.tables(), scope)
    keys = await source.catalog.keys(tables[0].catalog, tables[0].schema)
    found = []
    for table in tables:
        place = _place(table, source_type)
        query = exp.select("*").from_(place.copy()).sql(dialect=source.dialect)
        declared = [key for key in keys if key.table == table.name]
        found.append(_facts(table, place, await source.schema(query), declared))
    keyed = [facts if facts.key else replace(facts, key=_named_key(facts)) for facts in found]
    return [replace(facts, links=(*facts.links, *_named_links(facts, keyed))) for facts in keyed]


def _chosen(tables: Sequence[Table], scope: Scope) -> list[Table]:
    place = _schema(tables, scope)
    here = [table for table in tables if (table.catalog, table.schema) == place]
    if scope.tables is None:
        here = [table for table in here if "view" not in table.kind]
    else:
        here = [_named(here, name) for name in dict.fromkeys(scope.tables)]
    if not here:
        raise NotFound(f"There is no table in {'.'.join(place)}.")
    if len(here) > MAX_TABLES:
        raise InvalidInput(
            f"{'.'.join(place)} has {len(here)} tables; at most {MAX_TABLES} are taken.",
            hint="Name some: tables.",
        )
    return here


def _named(tables: Sequence[Table], name: str) -> Table:
    alike = [table for table in tables if table.name == name] or [
        t for t in tables if t.name.lower() == name.lower()
    ]
    if not alike:
        raise NotFound(f"There is no table {name[:200]!r} in this schema.")
    return alike[0]


def _schema(tables: Iterable[Table], scope: Scope) -> tuple[str, str]:
    found = dict.fromkeys((table.catalog, table.schema) for table in tables)
    fitting = [
        (catalog, schema)
        for catalog, schema in found
        if scope.catalog in (None, catalog) and scope.schema in (None, schema)
    ]
    usual = [place for place in fitting if place[1] in _USUAL]
    match fitting, usual:
        case ([only], _) | (_, [only]):
            return only
        case [], _:
            raise NotFound("There is no such schema in this source, or it has no tables.")
    raise InvalidInput(
        f"There are {len(fitting)} schemas to choose from.",
        hint="Name one: schema, and catalog where there are several.",
        schemas=[".".join(place) for place in fitting[:_SHOWN]],
    )


def _place(table: Table, source_type: str) -> exp.Table:
    """Its name, as far as its kind of source wants it qualified."""
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


def _named_key(facts: TableFacts) -> tuple[str, ...]:
    one = singular(facts.name).lower()
    usual = ("id", f"{one}_id", f"{facts.name.lower()}_id", f"{one}id", "uuid", f"{one}_key")
    names = {name.lower(): name for name in facts.columns.names}
    found = next((names[name] for name in usual if name in names), None)
    return () if found is None else (found,)


def _named_links(facts: TableFacts, tables: Sequence[TableFacts]) -> Iterator[Link]:
    """References that nobody declared: one column, one table that it can mean."""
    known = {column for link in facts.links for column in link.columns} | (
        {facts.key[0]} if len(facts.key) == 1 else set()
    )
    times = Counter(other.key[0].lower() for other in tables if len(other.key) == 1)
    for column in facts.columns.names:
        if column in known:
            continue
        meant = [
            other for other in tables if len(other.key) == 1 and _means(facts, column, other, times)
        ]
        if len(meant) == 1:
            yield Link(
                columns=(column,), table=meant[0].name, referenced=meant[0].key, declared=False
            )


def _means(facts: TableFacts, column: str, other: TableFacts, times: Counter[str]) -> bool:
    key, name = other.key[0].lower(), column.lower()
    one, many = singular(other.name).lower(), other.name.lower()
    written = {f"{one}_{key}", f"{many}_{key}", f"{one}{key}", f"{one}_id"}
    same_word = name == key and key not in _GENERIC and times[key] == 1 and other.name != facts.name
    return (same_word or name in written) and _alike(
        facts.columns.field(column).type, other.columns.field(other.key[0]).type
    )


def _alike(one: pa.DataType, other: pa.DataType) -> bool:
    return bool(one == other or (types.is_integer(one) and types.is_integer(other)))
