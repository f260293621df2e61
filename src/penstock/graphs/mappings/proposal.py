"""A mapping proposed from what is known of a schema's tables; it runs as it is.

A table with a key is a node. A table that does nothing but tie two others together (its key is the
two references, or it has no key) is an edge between them, with what else it holds as properties.
Every other reference is an edge from its table to the other one. References that were only guessed
are joined, so that no edge leads nowhere.
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
        self._ties = {facts.name for facts in tables if self._is_tie(facts)}
        given = naming.Given()
        keyed = [facts for facts in tables if facts.key and facts.name not in self._ties]
        self._labels = {
            facts.name: given.give(naming.label(facts.name)) for facts in keyed[:MAX_NODES]
        }
        self._keys = {name: key_of(self._tables[name]) for name in self._labels}

    def proposal(self) -> Proposal:
        nodes = tuple(self._node(self._tables[name]) for name in self._labels)
        edges = tuple(self._edges())[:MAX_EDGES]
        for facts in self._tables.values():
            if facts.name not in self._labels and facts.name not in self._ties:
                self._note(
                    facts,
                    "",
                    "It has no key, so it was left out.",
                    "Declare a primary key, or write its query.",
                )
        return Proposal(definitions=Definitions(nodes=nodes, edges=edges), notes=tuple(self._notes))

    def _is_tie(self, facts: TableFacts) -> bool:
        """Whether it is nothing but an edge: two references, which are its key, to tables that have
        one."""
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
            said = (
                f"Its key {facts.key[0]!r} was chosen by its name; nothing says that it is unique."
            )
            self._note(
                facts, facts.key[0], said, "Declare it as the primary key, or choose another."
            )
        key, given = self._keys[facts.name], naming.Given()
        key_name = given.give(naming.property_name(key.name))
        selected: list[exp.Expr] = [exp.alias_(key.over(facts.place.name), key_name, quoted=True)]
        kept = list(self._properties(facts, given, without=key.plain))
        selected += [expression for _, expression in kept]
        return NodeDefinition(
            label=self._labels[facts.name],
            sql=self._written(
                _filled(exp.select(*selected).from_(_as(facts)), facts, _doubtful(facts))
            ),
            primary_key=Property(name=key_name, type=key.type),
            properties=tuple(each for each, _ in kept),
        )

    def _properties(
        self, facts: TableFacts, given: naming.Given, *, without: Sequence[str]
    ) -> Iterator[tuple[Property, exp.Expr]]:
        columns = [field for field in facts.columns if field.name not in without]
        for field in columns[:MAX_PROPERTIES]:
            carried = property_of(field, facts.place.name)
            if carried is None:
                self._note(
                    facts,
                    field.name,
                    f"A {field.type} was left out.",
                    "Select from it what you need.",
                )
                continue
            if types.is_decimal(field.type):
                self._note(
                    facts,
                    field.name,
                    f"A {field.type} becomes DOUBLE, which rounds.",
                    "Cast it to a text.",
                )
            name = given.give(naming.property_name(field.name))
            yield (
                Property(name=name, type=carried.type),
                exp.alias_(carried.expression, name, quoted=True),
            )
        for field in columns[MAX_PROPERTIES:]:
            said = f"Only {MAX_PROPERTIES} properties fit, so it was left out."
            self._note(facts, field.name, said, "Choose which ones you need.")

    def _edges(self) -> Iterator[EdgeDefinition]:
        taken: set[tuple[str, str, str]] = set()
        for facts in self._tables.values():
            for edge in self._tie(facts) if facts.name in self._ties else self._references(facts):
                number, unique = 1, edge
                while unique.key in taken:
                    number, unique = number + 1, _renamed(edge, number + 1)
                taken.add(unique.key)
                yield unique

    def _tie(self, facts: TableFacts) -> Iterator[EdgeDefinition]:
        one, other = (link for link in facts.links if link.declared)
        if one.table not in self._labels or other.table not in self._labels:
            return
        query = exp.select().from_(_as(facts))
        given = naming.Given(FROM, TO)
        columns = (*one.columns, *other.columns)
        kept = list(self._properties(facts, given, without=columns))
        for name, link in ((FROM, one), (TO, other)):
            query, key = self._end(query, facts, link, name)
            query = query.select(exp.alias_(key, name, quoted=True))
        yield EdgeDefinition(
            type=naming.edge_type(facts.name),
            from_node=self._labels[one.table],
            to_node=self._labels[other.table],
            sql=self._written(_filled(query.select(*(e for _, e in kept)), facts, columns)),
            from_key=FROM,
            to_key=TO,
            properties=tuple(each for each, _ in kept),
        )

    def _references(self, facts: TableFacts) -> Iterator[EdgeDefinition]:
        if facts.name not in self._labels:
            return
        for link in facts.links:
            if link.table not in self._labels:
                self._note(
                    facts,
                    link.columns[0],
                    f"It refers to {link.table}, which is no node here.",
                    "Add it.",
                )
                continue
            if not link.declared:
                said = f"It was taken for a reference to {link.table} by its name."
                self._note(
                    facts, link.columns[0], said, "Declare a foreign key, or take the edge out."
                )
            key = self._keys[facts.name].over(facts.place.name)
            query = exp.select(exp.alias_(key, FROM, quoted=True)).from_(_as(facts))
            query, end = self._end(query, facts, link, TO)
            filled = (*_doubtful(facts), *link.columns)
            yield EdgeDefinition(
                type=naming.edge_type(f"HAS_{self._role(link)}"),
                from_node=self._labels[facts.name],
                to_node=self._labels[link.table],
                sql=self._written(
                    _filled(query.select(exp.alias_(end, TO, quoted=True)), facts, filled)
                ),
                from_key=FROM,
                to_key=TO,
            )

    def _role(self, link: Link) -> str:
        return (
            naming.role(link.columns[0]) if len(link.columns) == 1 else naming.singular(link.table)
        )

    def _end(
        self, query: exp.Select, facts: TableFacts, link: Link, name: str
    ) -> tuple[exp.Select, exp.Expr]:
        """The key of the row that is referred to: out of the reference itself where it holds it,
        else by a join."""
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

    def _written(self, query: exp.Select) -> str:
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


def _filled(query: exp.Select, facts: TableFacts, columns: Sequence[str]) -> exp.Select:
    """Without rows that refer to nothing."""
    return query.where(
        *(_column(facts.place.name, name).is_(exp.null()).not_() for name in columns)
    )


def _doubtful(facts: TableFacts) -> tuple[str, ...]:
    """A key that was only guessed may be empty somewhere."""
    return () if facts.key_declared else facts.key


def _renamed(edge: EdgeDefinition, number: int) -> EdgeDefinition:
    return replace(edge, type=f"{edge.type[:60]}_{number}")
