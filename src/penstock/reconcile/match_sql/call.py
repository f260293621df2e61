"""One call of a function in match_sql: its name, its arguments, and what they must be."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from penstock.reconcile.match_sql.parse import refused, shown
from penstock.reconcile.match_sql.types import WHOLE_DIGITS, Sort, SqlType, whole
from penstock.reconcile.match_sql.values import Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot import exp

    from penstock.engines.contract import Dialect
    from penstock.reconcile.match_sql.values import Maker

_LONGEST = 1_000_000_000
INTEGER = whole(WHOLE_DIGITS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A function call: its name and its arguments."""

    name: str
    node: exp.Expr
    arguments: Sequence[Value]
    maker: Maker

    @property
    def dialect(self) -> Dialect:
        return self.maker.dialect

    def result(self, sql: str, kind: SqlType) -> Value:
        return Value(sql=sql, type=kind, node=self.node)

    def text(self, place: int) -> str:
        """The SQL of an argument that is a text."""
        value = self.arguments[place]
        if value.type.sort is Sort.NULL:
            return "CAST(NULL AS VARCHAR)"
        if value.type.sort is not Sort.TEXT:
            raise refused(
                self.node,
                f"{self.name} takes texts, and {value} is none.",
                "Cast it: CAST(x AS VARCHAR).",
            )
        return value.sql

    def constant_text(self, place: int, what: str) -> str:
        """An argument that must be a text literal."""
        constant = self.arguments[place].constant
        if not isinstance(constant, str):
            raise refused(
                self.node,
                f"{what} of {self.name} is {shown(self.arguments[place].node)}, not a text.",
                "Write it out in quotes.",
            )
        return constant

    def constant_number(self, place: int, least: int, most: int) -> int:
        """An argument that must be an integer literal in a range."""
        constant = self.arguments[place].constant
        number = int(constant) if isinstance(constant, Decimal) and constant % 1 == 0 else None
        if number is None or not least <= number <= most:
            raise refused(
                self.node,
                f"{shown(self.arguments[place].node)} in {self.name} is no number that is written"
                f" out, from {least} to {most}.",
                "Write it out.",
            )
        return number

    def count(self, place: int, least: int) -> str:
        """The SQL of an integer argument, from `least` to a billion."""
        value = self.arguments[place]
        if value.type.sort is not Sort.NUMBER or value.type.scale:
            raise refused(
                self.node,
                f"{self.name} takes a whole number, and {value} is none.",
                "Write round(x).",
            )
        if isinstance(value.constant, Decimal):
            return str(self.constant_number(place, least, _LONGEST))
        wrong = f"NOT ({value.sql} BETWEEN {least} AND {_LONGEST})"
        why = f"is no number from {least} to {_LONGEST} for {self.name}"
        number = f"CAST({value.sql} AS BIGINT)"
        return self.maker.guarded(self.node, number, INTEGER, value, wrong, why).sql
