"""sqlglot as the guard uses it: a call stays the call that was written.

The parsers as they come translate functions they know into common ones and back, which renames
some, drops an argument here and there, and turns a few round. Ours know only those whose arguments
have a syntax of their own; every other call is kept by name, argument for argument. The writers,
too, keep the form of what follows a call.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import Dialect, ErrorLevel, Generator, Parser, exp

if TYPE_CHECKING:
    from sqlglot import Token

_OWN_SYNTAX = frozenset(
    """ARRAY CAST CHAR CONVERT EXTRACT GROUP_CONCAT JSON_OBJECT JSON_OBJECTAGG JSON_QUERY JSON_TABLE JSON_VALUE LISTAGG
    MATCH NORMALIZE OVERLAY POSITION SAFE_CAST SUBSTRING TRIM TRY_CAST""".split()  # noqa: SIM905
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


def _parser(known: type[Parser]) -> type[Parser]:
    special = {word: parse for word, parse in known.FUNCTION_PARSERS.items() if word in _OWN_SYNTAX}
    return type(
        f"Literal{known.__name__}", (known,), {"FUNCTIONS": {}, "FUNCTION_PARSERS": special}
    )


def _writer(name: str, known: type[Generator]) -> type[Generator]:
    kept = {exp.AtTimeZone: Generator.attimezone_sql, exp.WithinGroup: Generator.withingroup_sql}
    if name == "mysql":  # MariaDB has the operator and no REGEXP_LIKE
        kept[exp.RegexpLike] = lambda writer, node: writer.binary(node, "RLIKE")
    return type(f"Literal{known.__name__}", (known,), {"TRANSFORMS": known.TRANSFORMS | kept})


GRAMMARS = {name: _grammar(name) for name in ("bigquery", "duckdb", "mysql", "postgres", "trino")}
