"""PostgreSQL's attribute notation: `t.f` is column f of t or, without such a column, a call of
function f with t's row.

So a qualified name must be a real column, and a row as a whole goes nowhere. What a query itself
defines (WITH, subqueries, functions in FROM) is known here. The columns of tables are known to the
source alone: it asks its catalog and calls `unproven_attributes` before a query runs; until then a
name on a table is refused only if it is a function of PostgreSQL's own that takes a row.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from sqlglot import TokenType, exp

from penstock.guard.errors import FunctionRefused, SqlRefused
from penstock.guard.grammar import GRAMMARS
from penstock.guard.size_limits import place_of
from penstock.guard.tables import TableName

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sqlglot import Token

ROW_FUNCTIONS = frozenset(
    """any_out anycompatible_out anycompatiblenonarray_out anyelement_out anynonarray_out hash_record
    pg_collation_for pg_column_compression pg_column_size pg_column_toast_chunk_id
    pg_restore_attribute_stats pg_restore_relation_stats pg_typeof record_out record_send""".split()  # noqa: SIM905
)
"""PostgreSQL's own functions of a row that are on no list; a test holds this against a server's
catalog."""
_ROW_RESULTS = frozenset(
    """json_each json_each_text json_populate_record json_populate_recordset json_to_record json_to_recordset jsonb_each
    jsonb_each_text jsonb_populate_record jsonb_populate_recordset jsonb_to_record jsonb_to_recordset""".split()  # noqa: SIM905
)
_RESULT_COLUMNS = {
    "json_each": ("key", "value"),
    "json_each_text": ("key", "value"),
    "jsonb_each": ("key", "value"),
    "jsonb_each_text": ("key", "value"),
}
_HINT = "Name a column of the table. For a field of a composite value use to_json(t.column) ->> 'field'."
_ROW_HINT = (
    "Name its columns; if one of them has the name of the table, give the table another alias."
)

_FROM_CLAUSES = ("from_", "joins", "laterals")
_NAME_BYTES = 63
_NO_SIGNS = {TokenType.IDENTIFIER, TokenType.STRING, TokenType.NUMBER, TokenType.VAR}

Columns = frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outputs:
    """Columns that are surely there, and others that may be; `complete` when there are no more."""

    columns: Columns = frozenset()
    others: Columns = frozenset()
    complete: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Item:
    """What stands in FROM under one name."""

    name: str
    schema: str | None = None
    outputs: _Outputs
    source: exp.Expr


@dataclass(slots=True)
class _Scopes:
    """Each select is looked at once: names may be defined over names many times over."""

    tables: Mapping[TableName, Columns] = field(default_factory=dict)
    _items: dict[int, tuple[_Item, ...]] = field(default_factory=dict)
    _outputs: dict[int, _Outputs] = field(default_factory=dict)
    _sure: dict[int, Columns] = field(default_factory=dict)
    _named: dict[int, dict[str, list[_Item]]] = field(default_factory=dict)

    def columns(self, select: exp.Select) -> Columns:
        """The names that anything in FROM surely has."""
        if id(select) not in self._sure:
            items = self.items(select)
            self._sure[id(select)] = frozenset(c for item in items for c in item.outputs.columns)
        return self._sure[id(select)]

    def rows(self, select: exp.Select, name: str) -> list[_Item]:
        """What stands in FROM under a name."""
        if id(select) not in self._named:
            by_name: dict[str, list[_Item]] = {}
            for item in self.items(select):
                by_name.setdefault(item.name, []).append(item)
            self._named[id(select)] = by_name
        return self._named[id(select)].get(name, [])

    def named(self, node: exp.Column) -> list[_Item]:
        """What the qualifier of a column may mean, innermost first.

        The select around an expression decides, if it has the name at all. Inside its own FROM it
        may be passed over, for there only some of its names are in force."""
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
            if renamed:  # how many of the table's own names are left is the source's to say
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
        """Of a WITH of that name, wherever it is defined, of the table itself, or what both have."""
        name = TableName(catalog=table.catalog or None, schema=table.db or None, name=table.name)
        ctes = () if table.db else _ctes(table)
        outputs = [self._defined(cte) for cte in ctes if cte.alias == table.name]
        if name in self.tables:
            outputs.append(_Outputs(columns=self.tables[name], complete=True))
        if not outputs:
            return _Outputs()
        return _Outputs(
            columns=frozenset.intersection(*(each.columns for each in outputs)),
            others=frozenset.union(*(each.columns | each.others for each in outputs)),
            complete=all(each.complete for each in outputs),
        )

    def _defined(self, cte: exp.CTE) -> _Outputs:
        renamed = frozenset(column.name for column in cte.args["alias"].columns)
        return _Outputs(columns=renamed) if renamed else self.outputs(cte.this)

    def outputs(self, query: exp.Expr | None) -> _Outputs:
        """Of a query: a star over a table gives what the source says of it."""
        while isinstance(query, exp.SetOperation | exp.Subquery):
            query = query.this
        if not isinstance(query, exp.Select):
            return _Outputs()
        if id(query) not in self._outputs:
            self._outputs[id(query)] = _Outputs()  # what a recursive term sees of itself
            each = [self._output(item, query) for item in query.expressions]
            self._outputs[id(query)] = _Outputs(
                columns=frozenset(name for one in each for name in one.columns),
                others=frozenset(name for one in each for name in one.others),
                complete=all(one.complete for one in each),
            )
        return self._outputs[id(query)]

    def _output(self, item: exp.Expr, select: exp.Select) -> _Outputs:
        match item:
            case exp.Alias():
                return _Outputs(columns=frozenset({item.alias}), complete=True)
            case exp.Star() | exp.Column(this=exp.Star()):
                name = item.table if isinstance(item, exp.Column) else ""
                items = [each for each in self.items(select) if not name or each.name == name]
                return _Outputs(
                    columns=frozenset(c for each in items for c in each.outputs.columns),
                    others=frozenset(c for each in items for c in each.outputs.others),
                    complete=all(each.outputs.complete for each in items),
                )
            case exp.Column():
                return _Outputs(columns=frozenset({item.name}), complete=True)
            case exp.Anonymous():  # the name that PostgreSQL gives to a call
                return _Outputs(columns=frozenset({item.name.lower()}), complete=True)
            case exp.Cast() | exp.Paren():
                return replace(self._output(item.this, select), complete=False)
            case _:
                return _Outputs()


def _call(call: exp.Expr, alias: str, renamed: Columns) -> _Item:
    """A function in FROM: its own result is a column under its alias, unless it is a row."""
    name = call.name.lower() if isinstance(call, exp.Anonymous) else call.key
    columns = renamed
    if not renamed:
        row = frozenset(_RESULT_COLUMNS.get(name, ()))
        columns = row if name in _ROW_RESULTS else frozenset({alias or name})
    return _Item(name=alias or name, outputs=_Outputs(columns=columns), source=call)


def _ctes(node: exp.Expr) -> Iterator[exp.CTE]:
    """All that a name may mean; under RECURSIVE also those that are defined later, and around it."""
    child = node
    while (parent := child.parent) is not None:
        clause = parent.args.get("with_")
        if clause is not None and clause is not child:
            yield from clause.expressions
        if isinstance(parent, exp.With):
            yield from (cte for cte in parent.expressions if parent.recursive or cte is not child)
        child = parent


def check_attributes(tree: exp.Expr) -> None:
    """Refuse attribute notation on values, whole rows, and names that are surely no columns."""
    scopes = _Scopes()
    for identifier in tree.find_all(exp.Identifier):
        if len(identifier.name.encode()) > _NAME_BYTES:
            raise SqlRefused(
                f"The name {identifier.name[:80]!r} is longer than {_NAME_BYTES} bytes,"
                " so PostgreSQL would read another one.",
                **place_of(identifier),
            )
    for node in tree.find_all(exp.Dot, exp.Column):
        match node:
            case exp.Dot() if not isinstance(node.parent, exp.Table | exp.Dot):
                raise _refused(node, node.expression.name, "is written as the attribute of a value")
            case exp.Column(this=exp.Star()):
                if node.table and not isinstance(node.parent, exp.Select):
                    raise _refused(node, node.table, "is a row as a whole", hint=_ROW_HINT)
            case exp.Column() if node.table:
                _check_qualified(node, scopes)
            case exp.Column():
                _check_plain(node, scopes)


def _check_qualified(node: exp.Column, scopes: _Scopes) -> None:
    if node.args.get("catalog"):
        raise _refused(node, node.name, "has too many names before it")
    outputs = [item.outputs for item in scopes.named(node)]
    if outputs and all(node.name in each.columns for each in outputs):
        return
    nearest = outputs[0] if outputs else _Outputs()
    is_none = nearest.complete and node.name not in nearest.columns | nearest.others
    if is_none or node.name in ROW_FUNCTIONS:
        raise _refused(node, node.name, f"is no column of {node.table[:80]}")


def _is_named(item: _Item, node: exp.Column) -> bool:
    return item.name == node.table and (not node.args.get("db") or item.schema == node.text("db"))


def _check_plain(node: exp.Column, scopes: _Scopes) -> None:
    """An unqualified name is a column wherever there is one, and otherwise a whole row.

    A select that has the name in its own FROM proves it; from a FROM inside, the names beside it
    are in force only after LATERAL, so there a name proves no more than itself."""
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
                raise _refused(node, node.name, "is a row as a whole", hint=_ROW_HINT)
        child = parent


def _is_within(node: exp.Expr, source: exp.Expr) -> bool:
    parent: exp.Expr | None = node
    while parent is not None and parent is not source:
        parent = parent.parent
    return parent is source


def _refused(node: exp.Expr, name: str, why: str, *, hint: str = _HINT) -> FunctionRefused:
    place = next((found for part in node.find_all(exp.Identifier) if (found := place_of(part))), {})
    return FunctionRefused(
        f"{name[:80]} {why}, which could run a function.", hint=hint, function=name[:80], **place
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The words of a query by which it could run something: after a dot, before a bracket."""

    dotted: frozenset[str]
    called: frozenset[str]
    signs: str
    """Everything but names, strings and numbers."""
    casts: bool


def words(sql: str) -> Words:
    """By tokens alone, so of any text; a name counts too often rather than not at all."""
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
    """Every table of a query that can be parsed, those of a WITH as well."""
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
    """Names after a dot that are functions of the source and not surely columns or tables."""
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
