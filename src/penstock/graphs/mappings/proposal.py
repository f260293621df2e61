"""Proposes a mapping for the tables of a schema; it runs without changes.

A table with a key becomes a node. A join table (its key is two references, or it has two references
and no key) becomes an edge between them, with its other columns as properties. Every other
reference becomes an edge from its table to the referenced one. Guessed references are joined, so
that no edge has a missing node.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyarrow import types
from sqlglot import exp

from penstock.graphs.mappings import naming
from penstock.graphs.mappings.column_selection import key_of, property_of
from penstock.graphs.mappings.columns import Problem
from penstock.graphs.mappings.definition import (
    Definitions,
    EdgeDefinition,
    NodeDefinition,
    Property,
)
from penstock.graphs.mappings.rules import MAX_EDGES, MAX_NODES, MAX_PROPERTIES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.graphs.mappings.catalog import Link, TableFacts

FROM, TO = "from_key", "to_key"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    definitions: Definitions
    notes: tuple[Problem, ...]


def propose(tables: Sequence[TableFacts], dialect: str) -> Proposal:
    return _Draft(tables, dialect).proposal()


class _Draft:
    def __init__(self, tables: Sequence[TableFacts], dialect: str) -> None:
        self._tables = {facts.name: facts for facts in tables}
        self._dialect = dialect
        self._notes: list[Problem] = []
        self._join_tables = {facts.name for facts in tables if self._is_join_table(facts)}
        names = naming.UniqueNames()
        keyed = [facts for facts in tables if facts.key and facts.name not in self._join_tables]
        self._labels = {
            facts.name: names.add(naming.label(facts.name)) for facts in keyed[:MAX_NODES]
        }
        self._keys = {name: key_of(self._tables[name]) for name in self._labels}

    def proposal(self) -> Proposal:
        nodes = tuple(self._node(self._tables[name]) for name in self._labels)
        edges = tuple(self._edges())[:MAX_EDGES]
        for facts in self._tables.values():
            if facts.name not in self._labels and facts.name not in self._join_tables:
                self._note(
                    facts,
                    "",
                    "It has no key, so it was left out.",
                    "Declare a primary key, or write the query by hand.",
                )
        return Proposal(definitions=Definitions(nodes=nodes, edges=edges), notes=tuple(self._notes))

    def _is_join_table(self, facts: TableFacts) -> bool:
        """Whether the table only joins two others: two references to keyed tables, which are its
        key."""
        declared = [link for link in facts.links if link.declared]
        if len(declared) != 2 or any(
            self._refers_to(other, facts.name) for other in self._tables.values()
        ):
            return False
        columns = [column for link in declared for column in link.columns]
        ends = [self._tables.get(link.table) for link in declared]
        keyed = all(end is not None and end.key and end.name != facts.name for end in ends)
        return keyed and (not facts.key or sorted(columns) == sorted(facts.key))

    def _refers_to(self, facts: TableFacts, name: str) -> bool:
        return any(link.table == name and link.declared for link in facts.links)

    def _node(self, facts: TableFacts) -> NodeDefinition:
        if not facts.key_declared:
            problem = f"Its key {facts.key[0]!r} was guessed from its name; it may not be unique."
            self._note(
                facts, facts.key[0], problem, "Declare it as the primary key, or choose another."
            )
        key, names = self._keys[facts.name], naming.UniqueNames()
        key_name = names.add(naming.property_name(key.name))
        selected: list[exp.Expr] = [exp.alias_(key.over(facts.place.name), key_name, quoted=True)]
        properties = list(self._properties(facts, names, without=key.plain))
        selected += [expression for _, expression in properties]
        return NodeDefinition(
            label=self._labels[facts.name],
            sql=self._sql(
                _not_null(exp.select(*selected).from_(_as(facts)), facts, _guessed_key(facts))
            ),
            primary_key=Property(name=key_name, type=key.type),
            properties=tuple(column for column, _ in properties),
        )

    def _properties(
        self, facts: TableFacts, names: naming.UniqueNames, *, without: Sequence[str]
    ) -> Iterator[tuple[Property, exp.Expr]]:
        columns = [field for field in facts.columns if field.name not in without]
        for field in columns[:MAX_PROPERTIES]:
            selection = property_of(field, facts.place.name)
            if selection is None:
                self._note(
                    facts,
                    field.name,
                    f"A {field.type} was left out.",
                    "Select the fields that you need.",
                )
                continue
            if types.is_decimal(field.type):
                self._note(
                    facts,
                    field.name,
                    f"A {field.type} becomes DOUBLE, which rounds.",
                    "Cast it to VARCHAR to keep all digits.",
                )
            name = names.add(naming.property_name(field.name))
            yield (
                Property(name=name, type=selection.type),
                exp.alias_(selection.expression, name, quoted=True),
            )
        for field in columns[MAX_PROPERTIES:]:
            problem = f"Only {MAX_PROPERTIES} properties are allowed, so it was left out."
            self._note(facts, field.name, problem, "Choose the properties that you need.")

    def _edges(self) -> Iterator[EdgeDefinition]:
        taken: set[tuple[str, str, str]] = set()
        for facts in self._tables.values():
            for edge in (
                self._join_table_edge(facts)
                if facts.name in self._join_tables
                else self._references(facts)
            ):
                number, unique = 1, edge
                while unique.key in taken:
                    number, unique = number + 1, _renamed(edge, number + 1)
                taken.add(unique.key)
                yield unique

    def _join_table_edge(self, facts: TableFacts) -> Iterator[EdgeDefinition]:
        one, other = (link for link in facts.links if link.declared)
        if one.table not in self._labels or other.table not in self._labels:
            return
        query = exp.select().from_(_as(facts))
        names = naming.UniqueNames(FROM, TO)
        columns = (*one.columns, *other.columns)
        properties = list(self._properties(facts, names, without=columns))
        for name, link in ((FROM, one), (TO, other)):
            query, key = self._referenced_key(query, facts, link, name)
            query = query.select(exp.alias_(key, name, quoted=True))
        yield EdgeDefinition(
            type=naming.edge_type(facts.name),
            from_node=self._labels[one.table],
            to_node=self._labels[other.table],
            sql=self._sql(_not_null(query.select(*(e for _, e in properties)), facts, columns)),
            from_key=FROM,
            to_key=TO,
            properties=tuple(column for column, _ in properties),
        )

    def _references(self, facts: TableFacts) -> Iterator[EdgeDefinition]:
        if facts.name not in self._labels:
            return
        for link in facts.links:
            if link.table not in self._labels:
                self._note(
                    facts,
                    link.columns[0],
                    f"It refers to {link.table}, which is not a node here.",
                    "Add that table.",
                )
                continue
            if not link.declared:
                problem = f"It was taken for a reference to {link.table} because of its name."
                self._note(
                    facts, link.columns[0], problem, "Declare a foreign key, or remove the edge."
                )
            key = self._keys[facts.name].over(facts.place.name)
            query = exp.select(exp.alias_(key, FROM, quoted=True)).from_(_as(facts))
            query, end = self._referenced_key(query, facts, link, TO)
            filled = (*_guessed_key(facts), *link.columns)
            yield EdgeDefinition(
                type=naming.edge_type(f"HAS_{self._role(link)}"),
                from_node=self._labels[facts.name],
                to_node=self._labels[link.table],
                sql=self._sql(
                    _not_null(query.select(exp.alias_(end, TO, quoted=True)), facts, filled)
                ),
                from_key=FROM,
                to_key=TO,
            )

    def _role(self, link: Link) -> str:
        return (
            naming.role(link.columns[0]) if len(link.columns) == 1 else naming.singular(link.table)
        )

    def _referenced_key(
        self, query: exp.Select, facts: TableFacts, link: Link, name: str
    ) -> tuple[exp.Select, exp.Expr]:
        """The key of the referenced row: from the reference itself if it holds the key, else by a
        join."""
        other, key = self._tables[link.table], self._keys[link.table]
        if link.declared and sorted(link.referenced) == sorted(other.key):
            mine = dict(zip(link.referenced, link.columns, strict=True))
            return query, key.over(facts.place.name, mine, facts.columns)
        alias = f"{name}_row"
        pairs = zip(link.columns, link.referenced, strict=True)
        on = exp.and_(
            *(_column(facts.place.name, ours).eq(_column(alias, theirs)) for ours, theirs in pairs)
        )
        return query.join(_as(other, alias), on=on), key.over(alias)

    def _sql(self, query: exp.Select) -> str:
        return query.sql(dialect=self._dialect)

    def _note(self, facts: TableFacts, column: str, problem: str, suggestion: str) -> None:
        self._notes.append(
            Problem(
                entity=f"Table {facts.name}", column=column, problem=problem, suggestion=suggestion
            )
        )


def _as(facts: TableFacts, alias: str | None = None) -> exp.Expr:
    return exp.alias_(facts.place.copy(), alias or facts.place.name, quoted=True, table=True)


def _column(table: str, name: str) -> exp.Column:
    return exp.column(name, table=table, quoted=True)


def _not_null(query: exp.Select, facts: TableFacts, columns: Sequence[str]) -> exp.Select:
    """Exclude rows in which one of the columns is null."""
    return query.where(
        *(_column(facts.place.name, name).is_(exp.null()).not_() for name in columns)
    )


def _guessed_key(facts: TableFacts) -> tuple[str, ...]:
    """A guessed key may contain nulls."""
    return () if facts.key_declared else facts.key


def _renamed(edge: EdgeDefinition, number: int) -> EdgeDefinition:
    return replace(edge, type=f"{edge.type[:60]}_{number}")
