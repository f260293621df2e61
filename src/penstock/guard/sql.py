"""Read-only SQL: one SELECT, of listed parts, written anew from its tree.

    checked = check("SELECT id, name FROM customers -- all of them", "postgres")
    checked.sql      'SELECT "id", "name" FROM "customers"'

The order is the argument. Text that is too large or begins wrongly never reaches the parser; every
node of the tree must be of a listed kind, every function on the dialect's list, every table a plain
name. What runs is not what was sent but what was understood: SQL written from the tree, with every
identifier quoted and no comment, and parsed once more to the same tree, so nothing the writer of it
got wrong can pass. A read-only role, a timeout and caps on rows and bytes at the source come on
top; this guard does not replace them.
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
    """SQL that may run, and what is known of it without asking the source."""

    sql: str
    tables: tuple[TableName, ...]
    columns: tuple[str, ...] | None
    plain: PlainSelect | None


def check(
    sql: str, dialect: str, *, tables: TablePolicy | None = None, limits: SqlLimits | None = None
) -> Checked:
    """The query as it may run; raises `SqlRefused` with the piece that may not."""
    grammar = GRAMMARS[dialect]
    limits, policy = limits or SqlLimits(), tables or TablePolicy()
    try:
        meant = _understand(sql, grammar, limits)
        _check_size(meant, limits)
        read_tables(meant, dialect, policy)
        written = _write(meant, grammar)
        understood = _understand(written, grammar, _unbound(written, limits))
        _check_same(meant, understood, written, grammar)
        return Checked(
            sql=written,
            tables=read_tables(understood, dialect, policy),
            columns=output_columns(understood, dialect),
            plain=plain_select(understood, grammar),
        )
    except RecursionError:
        raise _too_deep() from None


def _too_deep() -> SqlTooLarge:
    return SqlTooLarge("The SQL is nested too deeply.", hint="Move inner parts into WITH clauses.")


def _unbound(written: str, limits: SqlLimits) -> SqlLimits:
    """Writing a query anew may add brackets; its own limits were already held by the original."""
    return SqlLimits(
        length=len(written), tokens=len(written), depth=4 * limits.depth, effort=limits.effort
    )


def _understand(sql: str, grammar: Grammar, limits: SqlLimits) -> exp.Expr:
    """One allowed statement's tree, its identifiers folded as the dialect folds them and marked as
    quoted."""
    tree = _parse(sql, read(sql, grammar, limits), grammar)
    check_nodes(tree.walk())
    check_calls(tree.walk(), grammar.name)
    _settle(tree, grammar)
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
    except Exception as error:  # the parser stumbles over some nonsense instead of naming it
        raise SqlUnreadable("The SQL cannot be read.", hint="Check its syntax.") from error


def _unreadable(error: ParseError) -> SqlUnreadable:
    first = error.errors[0] if error.errors else {}
    near, what = str(first.get("highlight") or "")[:80], str(first.get("description") or "")
    place = {"line": first["line"], "column": first["col"]} if first.get("line") else {}
    return SqlUnreadable(
        f"The SQL cannot be read near {near!r}."
        if near
        else "The SQL cannot be read: it ends too early.",
        hint=None if "<" in what else what,
        **place,
    )


def _settle(tree: exp.Expr, grammar: Grammar) -> None:
    for node in tree.find_all(exp.Identifier, exp.RawString):
        if isinstance(node, exp.RawString):
            node.replace(exp.Literal.string(node.name))
        elif not _is_word(node):
            if grammar.name == "postgres":
                grammar.dialect.normalize_identifier(node)
            node.set("quoted", True)


def _is_word(node: exp.Expr) -> bool:
    """Whether an unquoted name is a word of the language: a function's qualifier, or its `DAY` or
    `NFC` argument."""
    parent = node.parent
    if isinstance(parent, exp.Dot):
        return isinstance(parent.expression, exp.Func)
    if not isinstance(parent, exp.Column) or len(parent.parts) > 1 or node.args.get("quoted"):
        return False
    return isinstance(parent.parent, exp.Anonymous) and node.name.upper() in WORD_ARGUMENTS


def _check_size(tree: exp.Expr, limits: SqlLimits) -> None:
    """Writing takes time with the square of a tree's height; a long chain of operators is long, not
    high."""
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
            f"The SQL names tables {tables} times; at most {limits.tables} are allowed."
        )


def _write(tree: exp.Expr, grammar: Grammar) -> str:
    try:
        return grammar.write(tree)
    except UnsupportedError as error:
        raise SqlRefused(
            f"The SQL has a part this source does not know: {str(error).strip(' .')}."
        ) from error
    except RecursionError:
        raise
    except Exception as error:  # so does the writer
        raise SqlUnreadable("The SQL cannot be written anew.", hint="Check its syntax.") from error


def _check_same(meant: exp.Expr, understood: exp.Expr, written: str, grammar: Grammar) -> None:
    """Writing may change an expression's form, once; it may lose no name or value and add none but
    `ON TRUE`."""
    if understood == meant:
        return
    before, after = _leaves(meant, grammar), _leaves(understood, grammar)
    changed = (before - after) or (after - before - Counter({"TRUE": len(after)}))
    if changed or _write(understood, grammar) != written:
        piece = next(iter(changed), "an expression")[:80]
        raise SqlRefused(
            f"The SQL cannot be carried over exactly at {piece}.",
            hint="Write that part in another way.",
        )


def _leaves(tree: exp.Expr, grammar: Grammar) -> Counter[str]:
    return Counter(_write(leaf, grammar) for leaf in tree.find_all(*_LEAVES))
