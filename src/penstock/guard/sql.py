"""Read-only SQL: checks that a text is one SELECT of listed parts, and rewrites it from its tree.

    checked = check("SELECT id, name FROM customers -- all of them", "postgres")
    checked.sql      'SELECT "id", "name" FROM "customers"'

The order of the steps matters. Text that is too large or begins with another word never reaches the
parser; every node of the tree must be of a listed type, every function on the dialect's list, every
table a plain name. The SQL that runs is generated from the tree, with every identifier quoted and
no comments, and must parse to the same tree again, so that an error of the generator cannot pass. A
read-only role, a timeout and caps on rows and bytes at the source are needed as well; this guard
does not replace them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import ParseError, UnsupportedError, exp

from penstock.guard.allowed_functions import WORD_ARGUMENTS
from penstock.guard.allowed_nodes import check_nodes
from penstock.guard.attributes import check_attributes
from penstock.guard.calls import check_calls
from penstock.guard.columns import PlainSelect, output_columns, plain_select
from penstock.guard.errors import SqlRefused, SqlTooLarge, SqlUnreadable, StatementRefused
from penstock.guard.grammar import GRAMMARS
from penstock.guard.size_limits import SqlLimits, read
from penstock.guard.tables import TableName, TablePolicy, read_tables

if TYPE_CHECKING:
    from sqlglot import Token

    from penstock.guard.grammar import Grammar

_LEAVES = (exp.Boolean, exp.Identifier, exp.JSONPath, exp.Literal, exp.Null)
_LEVELS_A_BRACKET = 8
_ROOTS = (exp.Select, exp.SetOperation, exp.Subquery, exp.Values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """SQL that may run, and its properties that are known without the source."""

    sql: str
    tables: tuple[TableName, ...]
    columns: tuple[str, ...] | None
    plain: PlainSelect | None


def check(
    sql: str, dialect: str, *, tables: TablePolicy | None = None, limits: SqlLimits | None = None
) -> Checked:
    """The query in the form that may run; raises `SqlRefused` with the part that is not allowed."""
    grammar = GRAMMARS[dialect]
    limits, policy = limits or SqlLimits(), tables or TablePolicy()
    try:
        tree = _parse_checked(sql, grammar, limits)
        _check_size(tree, limits)
        read_tables(tree, dialect, policy)
        written = _write(tree, grammar)
        reparsed = _parse_checked(written, grammar, _relaxed(written, limits))
        _check_same(tree, reparsed, written, grammar)
        return Checked(
            sql=written,
            tables=read_tables(reparsed, dialect, policy),
            columns=output_columns(reparsed, dialect),
            plain=plain_select(reparsed, grammar),
        )
    except RecursionError:
        raise _too_deep() from None


def _too_deep() -> SqlTooLarge:
    return SqlTooLarge("The SQL is nested too deeply.", hint="Move inner parts into WITH clauses.")


def _relaxed(written: str, limits: SqlLimits) -> SqlLimits:
    """Limits for the rewritten query, which may have more brackets than the original."""
    return SqlLimits(
        length=len(written), tokens=len(written), depth=4 * limits.depth, effort=limits.effort
    )


def _parse_checked(sql: str, grammar: Grammar, limits: SqlLimits) -> exp.Expr:
    """The tree of one allowed statement, with identifiers folded by the dialect's rules and
    quoted."""
    tree = _parse(sql, read(sql, grammar, limits), grammar)
    check_nodes(tree.walk())
    check_calls(tree.walk(), grammar.name)
    _normalize_identifiers(tree, grammar)
    if grammar.name == "postgres":
        check_attributes(tree)
    return tree


def _parse(sql: str, tokens: list[Token], grammar: Grammar) -> exp.Expr:
    parsed = _parse_all(sql, tokens, grammar)
    statements = [
        tree for tree in parsed if tree is not None and not isinstance(tree, exp.Semicolon)
    ]
    if len(statements) != 1:
        raise StatementRefused(
            f"There are {len(statements)} statements.", hint="Write exactly one SELECT statement."
        )
    if not isinstance(statements[0], _ROOTS):
        raise StatementRefused(
            f"{statements[0].key.upper()} is not allowed here.", hint="Write one SELECT statement."
        )
    return statements[0]


def _parse_all(sql: str, tokens: list[Token], grammar: Grammar) -> list[exp.Expr | None]:
    try:
        return grammar.parse(sql, tokens)
    except ParseError as error:
        raise _unreadable(error) from error
    except RecursionError:
        raise
    except Exception as error:  # the parser crashes on some invalid input
        raise SqlUnreadable("The SQL cannot be parsed.", hint="Check its syntax.") from error


def _unreadable(error: ParseError) -> SqlUnreadable:
    first = error.errors[0] if error.errors else {}
    near, what = str(first.get("highlight") or "")[:80], str(first.get("description") or "")
    place = {"line": first["line"], "column": first["col"]} if first.get("line") else {}
    return SqlUnreadable(
        f"The SQL cannot be parsed near {near!r}."
        if near
        else "The SQL cannot be parsed: it is incomplete.",
        hint=None if "<" in what else what,
        **place,
    )


def _normalize_identifiers(tree: exp.Expr, grammar: Grammar) -> None:
    for node in tree.find_all(exp.Identifier, exp.RawString):
        if isinstance(node, exp.RawString):
            node.replace(exp.Literal.string(node.name))
        elif not _is_word(node):
            if grammar.name == "postgres":
                grammar.dialect.normalize_identifier(node)
            node.set("quoted", True)


def _is_word(node: exp.Expr) -> bool:
    """Whether an unquoted name is not a column: a function's qualifier, or its `DAY` or `NFC`
    argument."""
    parent = node.parent
    if isinstance(parent, exp.Dot):
        return isinstance(parent.expression, exp.Func)
    if not isinstance(parent, exp.Column) or len(parent.parts) > 1 or node.args.get("quoted"):
        return False
    return isinstance(parent.parent, exp.Anonymous) and node.name.upper() in WORD_ARGUMENTS


def _check_size(tree: exp.Expr, limits: SqlLimits) -> None:
    """Limit the height of the tree, since generating SQL takes quadratic time in it; a chain of
    binary operators counts as one level."""
    rising, tables = [(tree, 0)], 0
    while rising:
        node, height = rising.pop()
        tables += isinstance(node, exp.Table)
        if height > _LEVELS_A_BRACKET * limits.depth:
            raise _too_deep()
        rising += [
            (child, height + (not isinstance(child, exp.Binary)))
            for child in node.iter_expressions()
        ]
    if tables > limits.tables:
        raise SqlTooLarge(
            f"The SQL refers to tables {tables} times; at most {limits.tables} are allowed."
        )


def _write(tree: exp.Expr, grammar: Grammar) -> str:
    try:
        return grammar.write(tree)
    except UnsupportedError as error:
        raise SqlRefused(
            f"The SQL has a part that this source does not support: {str(error).strip(' .')}."
        ) from error
    except RecursionError:
        raise
    except Exception as error:  # the generator also crashes on some input
        raise SqlUnreadable("The SQL cannot be rewritten.", hint="Check its syntax.") from error


def _check_same(tree: exp.Expr, reparsed: exp.Expr, written: str, grammar: Grammar) -> None:
    """Rewriting may change an expression's form, once; it must not lose a name or value, or add
    one except `ON TRUE`."""
    if reparsed == tree:
        return
    before, after = _leaves(tree, grammar), _leaves(reparsed, grammar)
    changed = (before - after) or (after - before - Counter({"TRUE": len(after)}))
    if changed or _write(reparsed, grammar) != written:
        piece = next(iter(changed), "an expression")[:80]
        raise SqlRefused(
            f"The SQL cannot be rewritten exactly at {piece}.",
            hint="Write that part in another way.",
        )


def _leaves(tree: exp.Expr, grammar: Grammar) -> Counter[str]:
    return Counter(_write(leaf, grammar) for leaf in tree.find_all(*_LEAVES))
