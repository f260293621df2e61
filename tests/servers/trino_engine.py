"""Results of the in-process Trino: DuckDB's rows in Trino's types and Trino's JSON."""

from __future__ import annotations

import base64
import math
import re
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import orjson
import pyarrow as pa
import sqlglot

CATALOGS = ("lake", "memory")
_ERRORS: dict[type[duckdb.Error], str] = {
    duckdb.BinderException: "COLUMN_NOT_FOUND",
    duckdb.CatalogException: "TABLE_NOT_FOUND",
    duckdb.ParserException: "SYNTAX_ERROR",
}
_SIMPLE = {
    pa.bool_(): "boolean",
    pa.date32(): "date",
    pa.float32(): "real",
    pa.float64(): "double",
    pa.int16(): "smallint",
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.int8(): "tinyint",
}


class QueryError(Exception):
    def __init__(self, name: str, message: str, kind: str = "USER_ERROR") -> None:
        super().__init__(message)
        self.name, self.message, self.kind = name, message, kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A table that becomes JSON a page at a time."""

    columns: list[dict[str, Any]]
    table: pa.Table
    update: str | None = None

    def page(self, start: int, rows: int) -> bytes:
        part = self.table.slice(start, rows)
        values = [_values(column.combine_chunks(), column.type) for column in part.columns]
        return orjson.dumps(list(zip(*values, strict=True)))


class Engine:
    def __init__(self, *, unload: bool = False) -> None:
        self._unload = unload
        self._duck = duckdb.connect()
        self._duck.execute("SET TimeZone = 'UTC'")
        for name in (*CATALOGS, "metadata"):
            self._duck.execute(f"CREATE SCHEMA {name}")
        self._duck.execute("CREATE MACRO checksum(x) AS encode(CAST(SUM(hash(x)) AS VARCHAR))")
        self._duck.execute(
            "CREATE TABLE metadata.catalogs AS SELECT unnest(['lake', 'memory']) AS catalog_name"
        )

    def load(self, name: str, table: pa.Table) -> None:
        self._duck.register("incoming", table)
        self._duck.execute(f'CREATE OR REPLACE TABLE "{name}" AS SELECT * FROM incoming')
        self._duck.unregister("incoming")

    def run(self, sql: str) -> Result:
        if "system.unload(" in sql:
            return self._run_unload(sql)
        if files := re.search(r'"(\w+)"\."(\w+)"\."(\w+)\$files"', sql):
            return self._files(*files.groups())
        if created := re.match(
            r'CREATE TABLE ("\w+")\."\w+"\.("\w+") WITH \([^)]*\) AS\n(.*)', sql, re.DOTALL
        ):
            self._arrow(f"CREATE TABLE {created[1]}.{created[2]} AS {_duck_sql(created[3])}")
            counted = _result(
                self._arrow(f"SELECT count(*) AS rows FROM {created[1]}.{created[2]}")
            )
            return replace(counted, update="CREATE TABLE")
        return _result(self._arrow(_duck_sql(sql)), _names(sql))

    def _run_unload(self, sql: str) -> Result:
        if not self._unload:
            raise QueryError(
                "FUNCTION_NOT_FOUND",
                "line 1:21: Table function 'lake.system.unload' not registered",
            )
        inner = sql.partition("TABLE(\n")[2].partition("\n), location")[0]
        return _result(self._arrow(f"SELECT count(*) AS rows FROM ({_duck_sql(inner)})"))

    def _files(self, catalog: str, _schema: str, table: str) -> Result:
        counted = self._arrow(f'SELECT count(*) AS record_count FROM "{catalog}"."{table}"')
        path, size = pa.array([f"local:///{table}/part-0.parquet"]), pa.array([1000], pa.int64())
        return _result(
            counted.add_column(0, "file_path", path).append_column("file_size_in_bytes", size)
        )

    def _arrow(self, sql: str) -> pa.Table:
        try:
            relation: duckdb.DuckDBPyRelation | None = self._duck.cursor().sql(sql)
            return pa.table({}) if relation is None else relation.to_arrow_table()
        except duckdb.Error as e:
            raise QueryError(_ERRORS.get(type(e), "GENERIC_INTERNAL_ERROR"), str(e)) from None


def _duck_sql(sql: str) -> str:
    """Trino's SQL for a DuckDB of one catalog: the catalogs of a name become its schema, a version
    part of its name."""
    try:
        [statement] = sqlglot.parse(sql, read="trino")
    except (sqlglot.ParseError, sqlglot.TokenError, ValueError) as e:
        raise QueryError("SYNTAX_ERROR", str(e)) from None
    if statement is None:
        raise QueryError("SYNTAX_ERROR", "there is no statement")
    for table in statement.find_all(sqlglot.exp.Table):
        if table.catalog in CATALOGS and table.db != "information_schema":
            table.set("db", sqlglot.to_identifier(table.catalog))
        table.set("catalog", None)
        if version := table.args.get("version"):
            table.set(
                "this", sqlglot.to_identifier(f"{table.name}@{version.expression}", quoted=True)
            )
            table.set("version", None)
    return statement.sql(dialect="duckdb")


def _names(sql: str) -> list[str] | None:
    """The names as Trino has them, two of one name included: DuckDB would rename the second."""
    inner = re.fullmatch(r"SELECT \* FROM \(\n(.*)\n\) LIMIT 0", sql, re.DOTALL)
    query = sqlglot.parse_one(inner[1], read="trino") if inner else None
    return (
        query.named_selects if isinstance(query, sqlglot.exp.Select) and not query.is_star else None
    )


def _result(table: pa.Table, names: list[str] | None = None) -> Result:
    fields = zip(names or table.column_names, table.schema.types, strict=True)
    return Result(columns=[_column(name, kind) for name, kind in fields], table=table)


def _column(name: str, kind: pa.DataType) -> dict[str, Any]:
    if kind in _SIMPLE:
        return _described(name, _SIMPLE[kind])
    if pa.types.is_decimal(kind):
        return _described(name, "decimal", kind.precision, kind.scale)
    if pa.types.is_timestamp(kind):
        return _described(name, "timestamp with time zone" if kind.tz else "timestamp", 6)
    if pa.types.is_binary(kind):
        return _described(name, "varbinary")
    return _described(name, "varchar", 2147483647)


def _described(name: str, kind: str, *numbers: int) -> dict[str, Any]:
    arguments = [{"kind": "LONG", "value": number} for number in numbers]
    return {"name": name, "type": kind, "typeSignature": {"rawType": kind, "arguments": arguments}}


def _values(array: pa.Array, kind: pa.DataType) -> list[Any]:
    if pa.types.is_binary(kind):
        return [None if v is None else base64.b64encode(v).decode() for v in array.to_pylist()]
    if pa.types.is_floating(kind):
        return [_float(v) for v in array.to_pylist()]
    if pa.types.is_timestamp(kind):
        zone = " UTC" if kind.tz else ""
        texts = (
            array.view(pa.timestamp(kind.unit))
            .cast(pa.timestamp("us"))
            .cast(pa.string())
            .to_pylist()
        )
        return [None if text is None else text + zone for text in texts]
    if pa.types.is_decimal(kind) or pa.types.is_date(kind):
        array = array.cast(pa.string())
    return list(array.to_pylist())


def _float(value: float | None) -> float | str | None:
    if value is None or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
