"""Blocks function calls in PostgreSQL's attribute notation.

`t.f` is column f of t or, without such a column, a call of function f with t's row. So a qualified
name must be a real column, and whole-row references are refused. The columns that a query itself
defines (WITH, subqueries, functions in FROM) are resolved here. Only the source knows the columns
of tables: it reads its catalog and calls `unproven_attributes` before a query runs; until then a
name on a table is refused only if it is a built-in function that takes a row.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from sqlglot import TokenType, exp

from penstock.guard.errors import FunctionRefused, SqlRefused
from penstock.guard.grammar import GRAMMARS
from penstock.guard.size_limits import Place, place_of
from penstock.guard.tables import TableName

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sqlglot import Token


ROW_FUNCTIONS = frozenset(
    """any_out anycompatible_out anycompatiblenonarray_out anyelement_out anynonarray_out
    hash_record pg_collation_for pg_column_compression pg_column_size pg_column_toast_chunk_id
    pg_restore_attribute_stats pg_restore_relation_stats pg_typeof record_out record_send""".split()  # noqa: SIM905
)
"""PostgreSQL's built-in functions of a row that are not allowed; a test compares this with a
server's catalog."""
_ROW_RESULTS = frozenset(
    """json_each json_each_text json_populate_record json_populate_recordset json_to_record
    json_to_recordset jsonb_each jsonb_each_text jsonb_populate_record jsonb_populate_recordset
    jsonb_to_record jsonb_to_recordset""".split()  # noqa: SIM905
)
_RESULT_COLUMNS = {
    "json_each": ("key", "value"),
    "json_each_text": ("key", "value"),
    "jsonb_each": ("key", "value"),
    "jsonb_each_text": ("key", "value"),
}
_HINT = (
    "Use a column of the table. For a field of a composite value use to_json(t.column) ->> 'field'."
)
_ROW_HINT = (
    "List its columns; if one of them has the name of the table, give the table another alias."
)

_FROM_CLAUSES = ("from_", "joins", "laterals")
_NAME_BYTES = 63
_NO_SIGNS = {TokenType.IDENTIFIER, TokenType.STRING, TokenType.NUMBER, TokenType.VAR}

Columns = frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outputs:
    """Columns that certainly exist, and others that may; `complete` if there are no more."""

    columns: Columns = frozenset()
    others: Columns = frozenset()
    complete: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Item:
    """An item of a FROM clause."""

    name: str
    schema: str | None = None
    outputs: _Outputs
    source: exp.Expr


@dataclass(slots=True)
class _Scopes:
    """Resolves names in selects. Results are cached, since definitions can nest exponentially."""

    tables: Mapping[TableName, Columns] = field(default_factory=dict)
    _items: dict[int, tuple[_Item, ...]] = field(default_factory=dict)
    _outputs: dict[int, _Outputs] = field(default_factory=dict)
    _sure: dict[int, Columns] = field(default_factory=dict)
    _named: dict[int, dict[str, list[_Item]]] = field(default_factory=dict)

    def columns(self, select: exp.Select) -> Columns:
        """The column names that certainly exist in FROM."""
        if id(select) not in self._sure:
            items = self.items(select)
            self._sure[id(select)] = frozenset(c for item in items for c in item.outputs.columns)
        return self._sure[id(select)]

    def rows(self, select: exp.Select, name: str) -> list[_Item]:
        """The items of FROM with this name."""
        if id(select) not in self._named:
            by_name: dict[str, list[_Item]] = {}
            for item in self.items(select):
                by_name.setdefault(item.name, []).append(item)
            self._named[id(select)] = by_name
        return self._named[id(select)].get(name, [])

    def named(self, node: exp.Column) -> list[_Item]:
        """The items that the qualifier of a column may refer to, innermost first.

        The innermost select with that name decides. Inside its own FROM outer selects count too,
        since only some of its names are visible there."""
        items: list[_Item] = []
        child: exp.Expr = node
        while (parent := child.parent) is not None:
            if isinstance(parent, exp.Select):
                rows = self.rows(parent, node.table)
                items += [item for item in rows if _is_named(item, node)]
                if items and child.arg_key not in _FROM_CLAUSES:
                    break
            child = parent
        return items

    def items(self, select: exp.Select) -> tuple[_Item, ...]:
        if id(select) not in self._items:
            self._items[id(select)] = ()
            clause = select.args.get("from_")
            sources = [clause.this] if clause is not None else []
            sources += [join.this for join in select.args.get("joins") or ()]
            sources += select.args.get("laterals") or ()
            self._items[id(select)] = tuple(
                item for source in sources for item in self._source(source)
            )
        return self._items[id(select)]

    def _source(self, source: exp.Expr) -> Iterator[_Item]:
        for join in source.args.get("joins") or ():
            yield from self._source(join.this)
        alias = source.args.get("alias")
        renamed = frozenset(column.name for column in alias.columns) if alias else frozenset()
        inner = source.this
        if isinstance(source, exp.Table) and isinstance(inner, exp.Identifier):
            outputs = self._table(source)
            if renamed:  # how many of the table's own names remain, only the source knows
                outputs = _Outputs(columns=renamed)
            schema = None if source.alias else source.db or None
            yield _Item(name=source.alias_or_name, schema=schema, outputs=outputs, source=source)
        elif isinstance(inner, exp.Table) and not source.alias:
            yield from self._source(inner)
        elif isinstance(source, exp.Values):
            yield _Item(name=source.alias, outputs=_Outputs(columns=renamed), source=source)
        elif isinstance(source, exp.Subquery):
            outputs = _Outputs(columns=renamed) if renamed else self.outputs(inner)
            yield _Item(name=source.alias, outputs=outputs, source=source)
        elif isinstance(inner, exp.Subquery):
            outputs = _Outputs(columns=renamed) if renamed else self.outputs(inner.this)
            yield _Item(name=source.alias, outputs=outputs, source=source)
        else:
            call = inner if isinstance(source, exp.Table | exp.Lateral) else source
            yield _call(call, source.alias, renamed)

    def _table(self, table: exp.Table) -> _Outputs:
        """The columns of a WITH of that name, of the table itself, or those common to both."""
        name = TableName(catalog=table.catalog or None, schema=table.db or None, name=table.name)
        ctes = () if table.db else _ctes(table)
        outputs = [self._defined(cte) for cte in ctes if cte.alias == table.name]
        if name in self.tables:
            outputs.append(_Outputs(columns=self.tables[name], complete=True))
        if not outputs:
            return _Outputs()
        return _Outputs(
            columns=frozenset.intersection(*(output.columns for output in outputs)),
            others=frozenset.union(*(output.columns | output.others for output in outputs)),
            complete=all(output.complete for output in outputs),
        )

    def _defined(self, cte: exp.CTE) -> _Outputs:
        renamed = frozenset(column.name for column in cte.args["alias"].columns)
        return _Outputs(columns=renamed) if renamed else self.outputs(cte.this)

    def outputs(self, query: exp.Expr | None) -> _Outputs:
        """The output columns of a query; a star over a table expands to the source's columns."""
        while isinstance(query, exp.SetOperation | exp.Subquery):
            query = query.this
        if not isinstance(query, exp.Select):
            return _Outputs()
        if id(query) not in self._outputs:
            self._outputs[id(query)] = _Outputs()  # used by a recursive term
            parts = [self._output(item, query) for item in query.expressions]
            self._outputs[id(query)] = _Outputs(
                columns=frozenset(name for one in parts for name in one.columns),
                others=frozenset(name for one in parts for name in one.others),
                complete=all(one.complete for one in parts),
            )
        return self._outputs[id(query)]

    def _output(self, item: exp.Expr, select: exp.Select) -> _Outputs:
        match item:
            case exp.Alias():
                return _Outputs(columns=frozenset({item.alias}), complete=True)
            case exp.Star() | exp.Column(this=exp.Star()):
                name = item.table if isinstance(item, exp.Column) else ""
                items = [entry for entry in self.items(select) if not name or entry.name == name]
                return _Outputs(
                    columns=frozenset(c for entry in items for c in entry.outputs.columns),
                    others=frozenset(c for entry in items for c in entry.outputs.others),
                    complete=all(entry.outputs.complete for entry in items),
                )
            case exp.Column():
                return _Outputs(columns=frozenset({item.name}), complete=True)
            case exp.Anonymous():  # PostgreSQL names the column after the function
                return _Outputs(columns=frozenset({item.name.lower()}), complete=True)
            case exp.Cast() | exp.Paren():
                return replace(self._output(item.this, select), complete=False)
            case _:
                return _Outputs()


def _call(call: exp.Expr, alias: str, renamed: Columns) -> _Item:
    """A function in FROM: its result is a column named by its alias, unless it is a row."""
    name = call.name.lower() if isinstance(call, exp.Anonymous) else call.key
    columns = renamed
    if not renamed:
        row = frozenset(_RESULT_COLUMNS.get(name, ()))
        columns = row if name in _ROW_RESULTS else frozenset({alias or name})
    return _Item(name=alias or name, outputs=_Outputs(columns=columns), source=call)


def _ctes(node: exp.Expr) -> Iterator[exp.CTE]:
    """All CTEs that a name may refer to; under RECURSIVE also later and enclosing ones."""
    child = node
    while (parent := child.parent) is not None:
        clause = parent.args.get("with_")
        if clause is not None and clause is not child:
            yield from clause.expressions
        if isinstance(parent, exp.With):
            yield from (cte for cte in parent.expressions if parent.recursive or cte is not child)
        child = parent


def check_attributes(tree: exp.Expr) -> None:
    """Refuse attribute notation on values, whole rows, and names that cannot be columns."""
    scopes = _Scopes()
    for identifier in tree.find_all(exp.Identifier):
        if len(identifier.name.encode()) > _NAME_BYTES:
            raise SqlRefused(
                f"The name {identifier.name[:80]!r} is longer than {_NAME_BYTES} bytes,"
                " so PostgreSQL would truncate it.",
                **place_of(identifier),
            )
    for node in tree.find_all(exp.Dot, exp.Column):
        match node:
            case exp.Dot() if not isinstance(node.parent, exp.Table | exp.Dot):
                raise _refused(node, node.expression.name, "is used as the attribute of a value")
            case exp.Column(this=exp.Star()):
                if node.table and not isinstance(node.parent, exp.Select):
                    raise _refused(node, node.table, "is a whole row", hint=_ROW_HINT)
            case exp.Column() if node.table:
                _check_qualified(node, scopes)
            case exp.Column():
                _check_plain(node, scopes)


def _check_qualified(node: exp.Column, scopes: _Scopes) -> None:
    if node.args.get("catalog"):
        raise _refused(node, node.name, "has too many qualifiers")
    outputs = [item.outputs for item in scopes.named(node)]
    if outputs and all(node.name in output.columns for output in outputs):
        return
    nearest = outputs[0] if outputs else _Outputs()
    is_none = nearest.complete and node.name not in nearest.columns | nearest.others
    if is_none or node.name in ROW_FUNCTIONS:
        raise _refused(node, node.name, f"is not a column of {node.table[:80]}")


def _is_named(item: _Item, node: exp.Column) -> bool:
    return item.name == node.table and (not node.args.get("db") or item.schema == node.text("db"))


def _check_plain(node: exp.Column, scopes: _Scopes) -> None:
    """Refuse an unqualified name that may be a whole row: it is a column only where one exists.

    A select that has the name in its own FROM proves the column; inside a FROM, the sibling items
    are visible only after LATERAL, so there the select proves nothing."""
    proven = False
    child: exp.Expr = node
    while (parent := child.parent) is not None:
        if isinstance(parent, exp.Select):
            rows = scopes.rows(parent, node.name)
            if child.arg_key in _FROM_CLAUSES:
                rows = [item for item in rows if not _is_within(node, item.source)]
            else:
                proven = proven or node.name in scopes.columns(parent)
            if not proven and any(node.name not in item.outputs.columns for item in rows):
                raise _refused(node, node.name, "is a whole row", hint=_ROW_HINT)
        child = parent


def _is_within(node: exp.Expr, source: exp.Expr) -> bool:
    parent: exp.Expr | None = node
    while parent is not None and parent is not source:
        parent = parent.parent
    return parent is source


def _refused(node: exp.Expr, name: str, why: str, *, hint: str = _HINT) -> FunctionRefused:
    places = (place_of(part) for part in node.find_all(exp.Identifier))
    place = next((position for position in places if position), Place())
    return FunctionRefused(
        f"{name[:80]} {why}, which could call a function.", hint=hint, function=name[:80], **place
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The words of a query that could call a function: after a dot or before a bracket."""

    dotted: frozenset[str]
    called: frozenset[str]
    signs: str
    """Everything but names, strings and numbers."""
    casts: bool


def words(sql: str) -> Words:
    """The words of any text, found by tokens alone; this over-approximates."""
    tokens = GRAMMARS["postgres"].tokenize(sql)
    pairs = list(pairwise(tokens))
    called = {_name(token) for token, after in pairs if after.token_type == TokenType.L_PAREN}
    return Words(
        dotted=frozenset(_dotted(tokens)),
        called=frozenset(called),
        signs=" ".join(token.text for token in tokens if token.token_type not in _NO_SIGNS),
        casts="cast" in called or any(token.token_type == TokenType.DCOLON for token in tokens),
    )


def _dotted(tokens: list[Token]) -> Counter[str]:
    pairs = pairwise(tokens)
    return Counter(_name(token) for before, token in pairs if before.token_type == TokenType.DOT)


def _name(token: Token) -> str:
    return token.text if token.token_type == TokenType.IDENTIFIER else token.text.lower()


def qualified_tables(sql: str) -> tuple[TableName, ...]:
    """Every table that a query refers to, including the names of a WITH."""
    nodes = [node for tree in _trees(sql) for node in tree.find_all(exp.Table)]
    names = (
        TableName(catalog=node.catalog or None, schema=node.db or None, name=node.name)
        for node in nodes
        if isinstance(node.this, exp.Identifier)
    )
    return tuple(dict.fromkeys(names))


def unproven_attributes(
    sql: str, columns: Mapping[TableName, Columns], functions: frozenset[str]
) -> frozenset[str]:
    """Names after a dot that are functions of the source and not provably columns or tables."""
    proven: Counter[str] = Counter()
    for tree in _trees(sql):
        scopes = _Scopes(tables=columns)
        for node in tree.find_all(exp.Column, exp.Table):
            proven.update(_proven(node, scopes))
    dotted = _dotted(GRAMMARS["postgres"].tokenize(sql))
    return frozenset(name for name in functions if dotted[name] > proven[name])


def _proven(node: exp.Expr, scopes: _Scopes) -> Iterator[str]:
    if isinstance(node, exp.Table):
        if isinstance(node.this, exp.Identifier) and node.db:
            yield node.name
            yield from (node.db,) if node.catalog else ()
        return
    if not isinstance(node, exp.Column) or not node.table or isinstance(node.this, exp.Star):
        return
    items = scopes.named(node)
    if items and all(node.name in item.outputs.columns for item in items):
        yield node.name
    yield from (node.table,) if node.args.get("db") else ()


def _trees(sql: str) -> list[exp.Expr]:
    grammar = GRAMMARS["postgres"]
    trees = [tree for tree in grammar.parse(sql, grammar.tokenize(sql)) if tree is not None]
    for tree in trees:
        for identifier in tree.find_all(exp.Identifier):
            grammar.dialect.normalize_identifier(identifier)
    return trees
