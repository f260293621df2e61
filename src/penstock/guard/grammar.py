"""sqlglot parsers and generators that keep function calls as written.

The stock parsers translate known functions to generic ones and back, which renames some, drops
arguments, and swaps a few. Ours know only functions with special argument syntax; every other call
keeps its name and arguments. The generators also keep the syntax after a call.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import Dialect, ErrorLevel, Generator, Parser, exp

if TYPE_CHECKING:
    from sqlglot import Token

_OWN_SYNTAX = frozenset(
    """ARRAY CAST CHAR CONVERT EXTRACT GROUP_CONCAT JSON_OBJECT JSON_OBJECTAGG JSON_QUERY JSON_TABLE
    JSON_VALUE LISTAGG MATCH NORMALIZE OVERLAY POSITION SAFE_CAST SUBSTRING TRIM TRY_CAST""".split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    name: str
    dialect: Dialect
    parser: type[Parser]
    writer: type[Generator]

    def tokenize(self, sql: str) -> list[Token]:
        return self.dialect.tokenize(sql)

    def parse(self, sql: str, tokens: list[Token]) -> list[exp.Expr | None]:
        return self.parser(dialect=self.dialect, error_level=ErrorLevel.IMMEDIATE).parse(
            tokens, sql
        )

    def write(self, tree: exp.Expr) -> str:
        writer = self.writer(
            dialect=self.dialect, comments=False, unsupported_level=ErrorLevel.IMMEDIATE
        )
        return writer.generate(tree)


def _grammar(name: str) -> Grammar:
    dialect = Dialect.get_or_raise(name)
    parser, writer = _parser(dialect.parser_class), _writer(name, dialect.generator_class)
    return Grammar(name=name, dialect=dialect, parser=parser, writer=writer)


def _parser(base: type[Parser]) -> type[Parser]:
    special = {word: parse for word, parse in base.FUNCTION_PARSERS.items() if word in _OWN_SYNTAX}
    return type(f"Literal{base.__name__}", (base,), {"FUNCTIONS": {}, "FUNCTION_PARSERS": special})


def _writer(name: str, base: type[Generator]) -> type[Generator]:
    transforms = {
        exp.AtTimeZone: Generator.attimezone_sql,
        exp.WithinGroup: Generator.withingroup_sql,
    }
    if name == "mysql":  # MariaDB has the operator and no REGEXP_LIKE
        transforms[exp.RegexpLike] = lambda writer, node: writer.binary(node, "RLIKE")
    return type(f"Literal{base.__name__}", (base,), {"TRANSFORMS": base.TRANSFORMS | transforms})


GRAMMARS = {name: _grammar(name) for name in ("bigquery", "duckdb", "mysql", "postgres", "trino")}
