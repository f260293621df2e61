"""The functions of match_sql over texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.reconcile.match_sql.parse import refused
from penstock.reconcile.match_sql.types import BOOLEAN, TEXT, whole
from penstock.reconcile.recipes.patterns import check_replacement, group_count

if TYPE_CHECKING:
    from penstock.reconcile.match_sql.call import Call
    from penstock.reconcile.match_sql.values import Value


def lower(c: Call) -> Value:
    return c.result(c.dialect.lower(c.text(0)), TEXT)


def upper(c: Call) -> Value:
    return c.result(c.dialect.upper(c.text(0)), TEXT)


def length(c: Call) -> Value:
    return c.result(f"CAST(length({c.text(0)}) AS BIGINT)", whole(10))


def trim(c: Call) -> Value:
    where = {"trim": "BOTH", "ltrim": "LEADING", "rtrim": "TRAILING"}[c.name]
    return c.result(f"TRIM({where} ' ' FROM {c.text(0)})", TEXT)


def substr(c: Call) -> Value:
    more = f", {c.count(2, 0)}" if len(c.arguments) > 2 else ""
    return c.result(f"substr({c.text(0)}, {c.count(1, 1)}{more})", TEXT)


def left(c: Call) -> Value:
    return c.result(f"substr({c.text(0)}, 1, {c.count(1, 0)})", TEXT)


def right(c: Call) -> Value:
    text = c.text(0)
    start = f"GREATEST(CAST(length({text}) AS BIGINT) - {c.count(1, 0)}, 0) + 1"
    return c.result(f"CASE WHEN {text} IS NOT NULL THEN substr({text}, {start}) END", TEXT)


def pad(c: Call) -> Value:
    fill = c.constant_text(2, "The fill")
    if not fill:
        raise refused(c.node, f"The fill of {c.name} is empty.", "Write at least one character.")
    c.constant_number(1, 0, 10_000)
    return c.result(f"{c.name}({c.text(0)}, {c.count(1, 0)}, {c.text(2)})", TEXT)


def replace(c: Call) -> Value:
    text, piece, to = (c.text(place) for place in range(3))
    return c.result(f"replace({text}, {piece}, {to})", TEXT)


def strpos(c: Call) -> Value:
    return c.result(f"CAST(strpos({c.text(0)}, {c.text(1)}) AS BIGINT)", whole(10))


def contains(c: Call) -> Value:
    return c.result(f"{c.name}({c.text(0)}, {c.text(1)})", BOOLEAN)


def split_part(c: Call) -> Value:
    if not c.constant_text(1, "The separator"):
        raise refused(c.node, "The separator of split_part is empty.", "Write a character.")
    c.constant_number(2, 1, 10_000)
    return c.result(f"split_part({c.text(0)}, {c.text(1)}, {c.count(2, 1)})", TEXT)


def concat(c: Call) -> Value:
    texts = " || ".join(f"coalesce({c.text(place)}, '')" for place in range(len(c.arguments)))
    return c.result(f"({texts})", TEXT)


def _pattern(c: Call) -> str:
    pattern = c.constant_text(1, "The pattern")
    try:
        group_count(pattern)
    except ValueError as e:
        raise refused(
            c.node,
            f"{c.name}: {e}.",
            "The reference lists what patterns have.",
        ) from None
    return pattern


def regexp_matches(c: Call) -> Value:
    return c.result(c.dialect.matches(c.text(0), _pattern(c)), BOOLEAN)


def regexp_replace(c: Call) -> Value:
    pattern, to = _pattern(c), c.constant_text(2, "The replacement")
    if len(c.arguments) < 4 or c.arguments[3].constant != "g":
        raise refused(
            c.node,
            "regexp_replace replaces every match.",
            "Write 'g' as its fourth argument.",
        )
    try:
        check_replacement(pattern, to)
    except ValueError as e:
        raise refused(c.node, f"regexp_replace: {e}.", r"Write \1 for a group.") from None
    return c.result(c.dialect.replace(c.text(0), pattern, to), TEXT)


def levenshtein(c: Call) -> Value:
    return c.result(c.dialect.edits(c.text(0), c.text(1)), whole(10))
