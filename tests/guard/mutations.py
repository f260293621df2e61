"""Mutations of a statement that keep its meaning."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from penstock.guard.grammar import GRAMMARS

Mutation = Callable[[str, str, Random], str]

GAPS = [
    " ",
    "\t",
    "\n",
    "\r\n",
    "/**/",
    "/* x */",
    " /* ' */ ",
    ' /* " */ ',
    " /* ; */ ",
    "-- x\n",
    "-- '\n",
]
GAPS += [" /* SELECT 1 */ ", " /* sqlglot.anonymous */ ", " /* sqlglot.meta case_sensitive */ "]
STRANGE_GAPS = [*GAPS, "\u00a0", "\u2003", "\u3000", "\u2028", "\u0085"]

WRAPPERS = [
    "SELECT * FROM ({}) AS q",
    "SELECT * FROM customers JOIN ({}) AS q ON 1 = 1",
    "SELECT * FROM customers LEFT JOIN ({}) AS q ON 1 = 1 WHERE 1 = 1 ORDER BY 1",
    "WITH q AS ({}) SELECT * FROM q",
    "WITH q AS (SELECT 1 AS x), r AS ({}) SELECT * FROM q, r",
    "WITH RECURSIVE q AS (SELECT 1 AS x UNION ALL ({})) SELECT * FROM q",
    "SELECT ({})",
    "SELECT abs(({}))",
    "SELECT id, ({}) AS x FROM customers",
    "SELECT CASE WHEN 1 = 1 THEN ({}) ELSE 0 END",
    "SELECT CASE ({}) WHEN 1 THEN 2 END",
    "SELECT CAST(({}) AS CHAR(10))",
    "SELECT coalesce(NULL, ({}))",
    "SELECT 1 WHERE EXISTS ({})",
    "SELECT 1 WHERE NOT EXISTS ({})",
    "SELECT 1 WHERE 1 IN ({})",
    "SELECT id FROM customers WHERE id = ({})",
    "SELECT id FROM customers GROUP BY id HAVING count(*) > ({})",
    "SELECT sum(id) OVER (PARTITION BY ({})) FROM customers",
    "SELECT id FROM customers ORDER BY ({})",
    "SELECT 1 UNION ALL ({})",
    "({}) UNION ALL SELECT 1",
    "SELECT 1 EXCEPT ({})",
    "({})",
    "(({}))",
]
STACKS = [
    "{};",
    "SELECT 1; {}",
    "{}; SELECT 1",
    ";{}",
    "SELECT 1;;{}",
    "/* */;{}",
    "SELECT 1\n;\n{}",
]
LOOKALIKES = {
    "a": "а",
    "e": "е",
    "o": "о",
    "p": "р",
    "s": "ѕ",
    "i": "ı",
    "l": "ⅼ",
    "k": "\u212a",
    "c": "ⅽ",
    "_": "＿",
}
INVISIBLE = ["\u200b", "\u200d", "\u2060", "\ufeff", "\u00ad", "\u202e"]


def change_case(sql: str, dialect: str, rng: Random) -> str:
    """Another case for every word outside quotes."""
    changes: list[Callable[[str], str]] = [str.upper, str.lower, str.swapcase, str.title, str]
    return _rebuilt(
        sql, dialect, lambda text, quoted: text if quoted else rng.choice(changes)(text)
    )


def fill_gaps(sql: str, dialect: str, rng: Random, gaps: list[str] = STRANGE_GAPS) -> str:
    """Comments and strange spaces after some of the words."""
    return _rebuilt(sql, dialect, lambda text, _: text + rng.choice(["", "", *gaps]))


def spread(sql: str, dialect: str, rng: Random) -> str:
    """Gaps that no engine could read otherwise: a sign before a comment keeps its distance."""
    return fill_gaps(sql, dialect, rng, [f" {gap}" for gap in GAPS])


def wrap(sql: str, _: str, rng: Random) -> str:
    return rng.choice(WRAPPERS).format(sql.rstrip("; \n"))


def stack(sql: str, _: str, rng: Random) -> str:
    return rng.choice(STACKS).format(sql)


def look_alike(sql: str, dialect: str, rng: Random) -> str:
    """A letter that looks the same, or one that cannot be seen, inside a word."""
    start, end = rng.choice(_words(sql, dialect))
    place = rng.randrange(start, end)
    if rng.random() < 0.5:
        return sql[:place] + rng.choice(INVISIBLE) + sql[place:]
    return sql[:place] + LOOKALIKES.get(sql[place].lower(), sql[place]) + sql[place + 1 :]


def quote(sql: str, dialect: str, rng: Random) -> str:
    """One name before a bracket, if there is any, in quotes of some kind."""
    called = [(start, end) for start, end in _words(sql, dialect) if sql[end : end + 1] == "("]
    if not called:
        return sql
    start, end = rng.choice(called)
    mark = rng.choice(['"', "`", "'", "[]"])
    return f"{sql[:start]}{mark[0]}{sql[start:end]}{mark[-1]}{sql[end:]}"


def _words(sql: str, dialect: str) -> list[tuple[int, int]]:
    return [
        (start, end) for start, end, _ in _tokens(sql, dialect) if sql[start:end].isidentifier()
    ]


def _tokens(sql: str, dialect: str) -> list[tuple[int, int, bool]]:
    spans = [(token.start, token.end + 1) for token in GRAMMARS[dialect].tokenize(sql)]
    return [(start, end, not set("'\"`$").isdisjoint(sql[start:end])) for start, end in spans]


def _rebuilt(sql: str, dialect: str, change: Callable[[str, bool], str]) -> str:
    out, position = [], 0
    for start, end, quoted in _tokens(sql, dialect):
        out += [sql[position:start], change(sql[start:end], quoted)]
        position = end
    return "".join([*out, sql[position:]])
