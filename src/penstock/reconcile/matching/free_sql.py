"""match_sql: user-written SQL over `left_src` and `right_src` that returns both keys, and the
records that these keys identify."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.kit.errors import InvalidInput
from penstock.reconcile.errors import BadValue
from penstock.reconcile.match_sql.queries import compiled
from penstock.reconcile.match_sql.types import Sort, carried, decimal, type_of
from penstock.reconcile.matching.amounts import FULL
from penstock.reconcile.matching.clauses import FULL_SCORE
from penstock.reconcile.matching.column import case_twins
from penstock.reconcile.recipes.model import SIDES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from penstock.engines.contract import Engine
    from penstock.reconcile.match_sql.types import SqlType
    from penstock.reconcile.matching.column import Column
    from penstock.reconcile.recipes.model import Recipe, SideName

    Columns = Mapping[SideName, Mapping[str, Column]]

ANSWER = "free_answer"
"""The table of the keys that the SQL returned."""
_SHOWN = 80
_ONCE: Mapping[str | None, tuple[str, ...]] = {
    None: ("l", "r"),
    "1:1": ("l", "r"),
    "1:N": ("r",),
    "M:1": ("l",),
    "M:N": (),
}
"""By the pattern of free SQL the sides whose records are in one pair, unless they are ambiguous."""


def check_names(columns: Mapping[str, Column], side: SideName) -> None:
    """SQL names are case-insensitive, so free SQL cannot run over columns that differ only in
    case."""
    if (twins := case_twins(list(columns))) is not None:
        raise InvalidInput(
            f"Columns {twins[0]!r} and {twins[1]!r} of the {side} side differ only in case,"
            " and SQL does not tell them apart.",
            hint="Rename one of them in the source's query, or write rules instead of match_sql.",
            side=side,
        )


class FreeSql:
    """The match_sql of a recipe on an engine: its result, and the records it identifies."""

    def __init__(
        self,
        engine: Engine,
        recipe: Recipe,
        left: Mapping[str, Column],
        right: Mapping[str, Column],
    ) -> None:
        self._engine = engine
        self._recipe = recipe
        self._columns: Columns = {"left": left, "right": right}
        for side, columns in self._columns.items():
            check_names(columns, side)
        zone = recipe.time_zone
        self._compiled = compiled(recipe.match_sql or "", engine.dialect, zone, self._columns)
        self._returned = [key for side in SIDES for key in self._keys(side)]

    @property
    def lead(self) -> SideName:
        """The side whose record identifies a match."""
        return "right" if self._recipe.match_pattern == "M:1" else "left"

    def ask(self, most: int) -> int:
        """Store the keys that the SQL returns, as `l0…` and `r0…`, with a row limit; returns their
        number."""
        chosen = ", ".join(f"q.{key.sql} AS {key.name}" for key in self._returned)
        sql = f"SELECT {chosen} FROM ({self._compiled.sql}) AS q LIMIT {most}"
        return self._engine.table(ANSWER, sql)

    def check_keys(self) -> None:
        """Every returned key must be the key of exactly one record; an all-null key, as outer joins
        return it, stands for no record."""
        for side in SIDES:
            names = ", ".join(self._names(side))
            chosen = ", ".join(f"q.{name}" for name in self._names(side))
            times = f"COUNT({side[0]}._id)"
            counted = [
                f"SELECT {chosen}, {times} AS n",
                f"FROM (SELECT DISTINCT {names} FROM {ANSWER} AS q WHERE {self._some(side)}) AS q",
                f"LEFT JOIN {side[0]} ON {self._on(side)}",
                f"GROUP BY {chosen} HAVING {times} <> 1 ORDER BY {chosen} LIMIT 1",
            ]
            for *key, count in self._engine.rows(" ".join(counted)):
                raise self._wrong_key(side, key, count)

    def pairs(self, left: str, right: str) -> str:
        """Distinct pairs of record ids that are still in the pools."""
        joins = f"JOIN {left} AS l ON {self._on('left')} JOIN {right} AS r ON {self._on('right')}"
        both = f"{self._some('left')} AND {self._some('right')}"
        return f"SELECT DISTINCT l._id AS l, r._id AS r FROM {ANSWER} AS q {joins} WHERE {both}"

    def links(self, pairs: str) -> str:
        """Links of pairs; a record in more of them than the pattern allows is ambiguous."""
        once = _ONCE[self._recipe.match_pattern]
        often = "SELECT {0} FROM {1} GROUP BY {0} HAVING COUNT(*) > 1"
        join = "LEFT JOIN ({1}) AS b{0} ON b{0}.{0} = p.{0}"
        joins = " ".join(join.format(side, often.format(side, pairs)) for side in once)
        ambiguous = " OR ".join(f"b{side}.{side} IS NOT NULL" for side in once) or "FALSE"
        score = f"CAST({FULL_SCORE} AS BIGINT)"
        chosen = f"p.{self.lead[0]} AS g, p.l, p.r, {score} AS s, ({ambiguous}) AS ambiguous"
        return f"SELECT {chosen} FROM {pairs} AS p {joins}"

    def reasons(self, side: SideName) -> FreeReasons:
        """Why the SQL returned no pair of a record, judged by the equalities that it joins the two
        sides with."""
        equal = self._compiled.equalities
        place = SIDES.index(side)
        mine, theirs = ([pair[at] for pair in equal] for at in (place, 1 - place))
        both = f"{self._some('left')} AND {self._some('right')}"
        keys = range(len(_key(side, self._recipe)))
        return FreeReasons(
            returned=f"SELECT DISTINCT {side[0]}._id FROM {ANSWER} AS q"
            f" JOIN {side[0]} ON {self._on(side)} WHERE {both}",
            nameless=" AND ".join(f"x.p{number} IS NULL" for number in keys),
            mine=mine,
            theirs=theirs,
        )

    def _names(self, side: SideName) -> list[str]:
        return [f"{side[0]}{number}" for number in range(len(_key(side, self._recipe)))]

    def _on(self, side: SideName) -> str:
        """Join of a record by its key, parts of which may be null."""
        keys = [key for key in self._returned if key.side == side]
        same = "=" if len(keys) == 1 else "IS NOT DISTINCT FROM"
        equal = []
        for number, key in enumerate(keys):
            own = carried(key.column, f"{side[0]}.p{number}", self._engine.dialect)
            pair = [
                f"CAST({sql} AS {key.type})" if key.type else sql for sql in (f"q.{key.name}", own)
            ]
            equal.append(f"({pair[0]} {same} {pair[1]})")
        return " AND ".join(equal)

    def _some(self, side: SideName) -> str:
        return f"({' OR '.join(f'q.{name} IS NOT NULL' for name in self._names(side))})"

    def _keys(self, side: SideName) -> Iterator[_ReturnedKey]:
        """A side's key in the result of the SQL, cast to the type of its column."""
        other = _key("right" if side == "left" else "left", self._recipe)
        names = [name for name, _, _ in self._compiled.columns]
        for number, key in enumerate(_key(side, self._recipe)):
            name = f"{side}_{key}" if f"{side}_{key}" in names else key
            if name not in names or (name == key and key in other):
                raise InvalidInput(
                    f"match_sql does not return the {side} key {key}.",
                    hint=f"Select it as {side}_{key}: SELECT left_src.{key} AS {side}_{key}, …",
                )
            if names.count(name) > 1:
                raise InvalidInput(
                    f"match_sql returns {names.count(name)} columns called {name}.",
                    hint=f"Return the {side} key once.",
                )
            _, sql, kind = self._compiled.columns[names.index(name)]
            column = self._columns[side][key]
            yield _ReturnedKey(
                side=side,
                name=f"{side[0]}{number}",
                sql=sql,
                column=column,
                type=_compared_type(side, column, kind),
            )

    def _wrong_key(self, side: SideName, key: list[object], times: int) -> InvalidInput:
        shown = [None if part is None else str(part)[:_SHOWN] for part in key]
        names = ", ".join(_key(side, self._recipe))
        returns = f"match_sql returns the {side} key {', '.join(map(repr, shown))} ({names}), which"
        if not times:
            return BadValue(
                f"{returns} no record of that side has.",
                hint=f"Return the key of the {side} side as it is; are the two keys swapped?",
                side=side,
                key=shown,
            )
        return BadValue(
            f"{returns} {times} records have: the match is ambiguous.",
            hint="Name columns as primary_key that tell the records apart, or leave duplicates out"
            " in the source's query.",
            side=side,
            key=shown,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeReasons:
    """`returned` selects the records that the SQL returned, `nameless` is true of a record without
    a key; `mine` and `theirs` are the expressions that the SQL joins by equality, over the two
    relations, as far as they can be derived."""

    returned: str
    nameless: str
    mine: list[str]
    theirs: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _ReturnedKey:
    """A part of a key that the SQL returns: its names in the result and in the SQL, its source
    column, and the type in which both are compared."""

    side: SideName
    name: str
    sql: str
    column: Column
    type: str


def _compared_type(side: SideName, column: Column, returned: SqlType) -> str:
    own = type_of(column)
    if returned.sort is Sort.NULL:
        return own.sql
    kinds = [(kind.sort, kind.zoned, kind.unit) for kind in (own, returned)]
    if kinds[0] != kinds[1]:
        raise InvalidInput(
            f"match_sql returns the {side} key {column.name} as {returned}, but it is {own}.",
            hint=f"Return the column as it is: {side}_src.{column.name} AS {side}_{column.name}.",
            side=side,
        )
    if own.sort is not Sort.NUMBER:
        return "" if own.sort is Sort.BYTES else own.sql
    scale = max(own.scale, returned.scale)
    digits = min(FULL - scale, max(own.digits, returned.digits))
    return own.sql if own.whole and returned.whole else decimal(digits, scale).sql


def _key(side: SideName, recipe: Recipe) -> tuple[str, ...]:
    return recipe.sources.left.primary_key if side == "left" else recipe.sources.right.primary_key
