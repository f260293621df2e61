"""Parses match_sql against an allowlist; anything else is refused by name, with what to write
instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import ParseError, exp

from penstock.guard.errors import (
    FunctionRefused,
    SqlRefused,
    SqlTooLarge,
    SqlUnreadable,
    StatementRefused,
    TableRefused,
)
from penstock.guard.grammar import GRAMMARS
from penstock.guard.size_limits import SqlLimits, place_of, read

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

IN_THE_REFERENCE = "docs/reference/match-sql.md lists what it has."
SOURCES = ("left_src", "right_src")
_GRAMMAR = GRAMMARS["duckdb"]
_LIMITS = SqlLimits()
_QUERIES = """
    Alias CTE Column Distinct Except Exists From Group Having Identifier Intersect Join Order
    Ordered Paren Select Star Subquery Table TableAlias Union Where Window With
"""
_EXPRESSIONS = """
    Add And Anonymous Between Boolean Case Cast DPipe DataType DataTypeParam Div EQ Escape Extract
    GT GTE If In IntDiv Interval Is LT LTE Like Literal Mod Mul NEQ Neg Not Null NullSafeEQ
    NullSafeNEQ Or StrPosition Sub Substring Trim TryCast Var
"""
_LISTED = frozenset(getattr(exp, name) for name in (_QUERIES + _EXPRESSIONS).split())
_INSTEAD: Mapping[type[exp.Expr], tuple[str, str]] = {
    exp.Limit: ("LIMIT", "Choose records by a condition, or by row_number() in a subquery."),
    exp.Offset: ("OFFSET", "Choose records by a condition, or by row_number() in a subquery."),
    exp.Fetch: ("FETCH", "Choose records by a condition, or by row_number() in a subquery."),
    exp.Qualify: ("QUALIFY", "Select the window function in a subquery, and ask for it outside."),
    exp.Filter: ("FILTER", "Write the condition into the argument: sum(CASE WHEN … THEN x END)."),
    exp.ILike: ("ILIKE", "Write lower(a) LIKE 'pattern in lower case'."),
    exp.SimilarTo: ("SIMILAR TO", "Write regexp_matches(text, 'pattern')."),
    exp.RegexpLike: ("~", "Write regexp_matches(text, 'pattern')."),
    exp.WindowSpec: (
        "A frame (ROWS, RANGE)",
        "Leave it out; a window is everything up to this row.",
    ),
    exp.CurrentDate: ("CURRENT_DATE", "It has another value in every run; compare columns."),
    exp.CurrentTimestamp: (
        "CURRENT_TIMESTAMP",
        "It has another value in every run; compare columns.",
    ),
    exp.AtTimeZone: ("AT TIME ZONE", "Set the recipe's time_zone, and cast to DATE."),
    exp.Collate: ("COLLATE", "Texts are compared by their characters; write lower(…)."),
    exp.Any: ("ANY", "Write IN (…)."),
    exp.All: ("ALL", "Write a comparison with every value, or NOT EXISTS (…)."),
    exp.Tuple: ("A tuple", "Compare its parts one by one."),
    exp.Array: ("A list", "Write the values one by one."),
    exp.Values: ("VALUES", "Read from left_src and right_src."),
    exp.BitwiseAnd: ("&", "Write % and / on whole numbers."),
}
_OTHER_FUNCTIONS: Mapping[str, str] = {
    **dict.fromkeys(
        ("now", "today", "current_localtime", "current_localtimestamp", "get_current_timestamp"),
        "It has another value in every run; compare columns.",
    ),
    **dict.fromkeys(
        ("rand", "random", "uuid", "gen_random_uuid"),
        "It has another value in every run; choose records by their columns.",
    ),
    **dict.fromkeys(("avg", "mean"), "Write sum(x) / count(x)."),
    **dict.fromkeys(("any_value", "arbitrary", "first", "last", "mode"), "Write min(x) or max(x)."),
    **dict.fromkeys(
        ("string_agg", "group_concat", "listagg", "array_agg", "list"),
        "Its order is not the same in every run; compare the records one by one.",
    ),
    **dict.fromkeys(
        ("initcap", "reverse", "ascii", "chr", "unicode"),
        "Compare texts as they are.",
    ),
    **dict.fromkeys(
        ("power", "pow", "sqrt", "ln", "log", "log2", "log10", "exp", "sin", "cos", "tan"),
        "Its last digits depend on the engine; compute it in the source's query.",
    ),
    "concat_ws": "Write a || '-' || b, with coalesce(a, '') where a value may be missing.",
    "regexp_like": "Write regexp_matches(text, 'pattern').",
    "regexp_extract": "Write regexp_replace(text, '^.*(pattern).*$', '\\1', 'g').",
    "strftime": "Write extract(year FROM day), or CAST(day AS VARCHAR).",
    "datediff": "Write date_diff('day', earlier, later).",
    "date_add": "Write day + 3.",
    "date_sub": "Write day - 3.",
    "last_value": "Write first_value(x) OVER (… ORDER BY … DESC).",
    "isnan": "Write x = CAST('NaN' AS DOUBLE).",
    "jaro_winkler_similarity": "Write similarity(a, b).",
}


def parse(sql: str, functions: Collection[str]) -> exp.Query:
    """The tree of one SELECT over both sources; raises the errors of the SQL guard."""
    try:
        tree = _statement(sql)
        names = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
        for node in tree.walk():
            _check(node, functions, names)
    except RecursionError:
        raise too_deep() from None
    return tree


def too_deep() -> SqlTooLarge:
    return SqlTooLarge("The SQL is nested too deeply.", hint="Move inner parts into WITH clauses.")


def refused(node: exp.Expr, what: str, instead: str) -> SqlRefused:
    return SqlRefused(f"match_sql: {what}", hint=instead, **place_of(node))


def shown(node: exp.Expr) -> str:
    """An excerpt of the SQL for an error message."""
    text = _GRAMMAR.write(node)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _statement(sql: str) -> exp.Query:
    tokens = read(sql, _GRAMMAR, _LIMITS)
    try:
        parsed = _GRAMMAR.parse(sql, tokens)
    except ParseError as error:
        first = error.errors[0] if error.errors else {}
        near = str(first.get("highlight") or "")[:80]
        message = f"The SQL cannot be read near {near!r}." if near else "The SQL ends too early."
        raise SqlUnreadable(message, hint="Check its syntax.") from error
    except RecursionError:
        raise
    except Exception as error:  # the parser stumbles over some nonsense instead of naming it
        raise SqlUnreadable("The SQL cannot be read.", hint="Check its syntax.") from error
    trees = [tree for tree in parsed if tree is not None and not isinstance(tree, exp.Semicolon)]
    if len(trees) != 1:
        raise StatementRefused(f"There are {len(trees)} statements.", hint="Write one SELECT.")
    tree = trees[0].unnest() if isinstance(trees[0], exp.Subquery) else trees[0]
    if not isinstance(tree, exp.Select | exp.SetOperation):
        raise StatementRefused(f"{tree.key.upper()} is not allowed here.", hint="Write one SELECT.")
    return tree


def _check(node: exp.Expr, functions: Collection[str], names: Collection[str]) -> None:
    if type(node) not in _LISTED:
        spoken = type(node).__name__.upper()
        what, instead = _INSTEAD.get(type(node), (spoken, IN_THE_REFERENCE))
        raise refused(node, f"{what} is not part of its SQL.", instead)
    if isinstance(node, exp.Table):
        _check_table(node, names)
    if isinstance(node, exp.Anonymous) and (
        isinstance(node.this, exp.Identifier) or node.name.lower() not in functions
    ):
        name = node.name.lower()
        raise FunctionRefused(
            f"match_sql: Function {name[:80]} is not part of its SQL.",
            hint=_OTHER_FUNCTIONS.get(name, "docs/reference/match-sql.md lists the functions."),
            function=name[:80],
            **place_of(node),
        )


def _check_table(node: exp.Table, names: Collection[str]) -> None:
    name = node.name.lower()
    plain = isinstance(node.this, exp.Identifier) and not node.args.get("db")
    if not plain or name not in (*SOURCES, *names):
        raise TableRefused(
            f"match_sql: There is no table {shown(node)}.",
            hint="Read left_src and right_src.",
        )


def only(node: exp.Expr, *names: str) -> None:
    """Refuse a node with parts that are not supported here."""
    for name, part in node.args.items():
        if name not in names and part:
            word = name.strip("_").replace("_", " ").upper()
            raise refused(node, f"{word} is not part of its SQL in {shown(node)}.", "Leave it out.")


def conjuncts(condition: exp.Expr) -> Iterator[exp.Expr]:
    """The operands of AND, flattened."""
    rest = [condition]
    while rest:
        part = rest.pop().unnest()
        if isinstance(part, exp.And):
            rest += [part.expression, part.this]
        else:
            yield part


def using_of(join: exp.Join) -> Sequence[exp.Expr]:
    return join.args.get("using") or ()
