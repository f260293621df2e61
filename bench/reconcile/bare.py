"""Bare engines, each used the idiomatic way: three outputs, in order, zstd, amounts exact."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import polars as pl
from datafusion import SessionConfig, SessionContext

from bench.reconcile.cases import CASES, WITHIN, Case

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

THREADS = 2
SIDES = (("left", "l", "left_id"), ("right", "r", "right_id"))


class Contested(Exception):
    """Records compete, and the shortcut of the bare ways would be wrong."""


def in_duckdb(case: str, left: Path, right: Path, out: Path) -> None:
    with duckdb.connect(config={"threads": THREADS}) as db:
        for name, file in (("l", left), ("r", right)):
            db.execute(f"CREATE VIEW {name} AS SELECT * FROM '{file}'")
        definition = CASES[case]
        for name, sql in definition.steps:
            db.execute(f"CREATE TABLE {name} AS {sql}")
        _check(definition, lambda sql: db.execute(f"SELECT count(*) FROM ({sql})").fetchall()[0][0])
        copy = "COPY ({}) TO '{}' (COMPRESSION zstd)"
        db.execute(
            copy.format(f"SELECT * FROM m ORDER BY {definition.order}", out / "matched.parquet")
        )
        for name, side, key in SIDES:
            rest = (
                f"SELECT x.* FROM {side} AS x WHERE NOT EXISTS"
                f" (SELECT 1 FROM m WHERE m.{key} = x.id) ORDER BY x.id"
            )
            db.execute(copy.format(rest, out / f"{name}.parquet"))


def in_duckdb_explained(_case: str, left: Path, right: Path, out: Path) -> None:
    """One to one, with all that our evidence says: ids of matches, reasons, the nearest candidate,
    differences."""
    with duckdb.connect(config={"threads": THREADS}) as db:
        for name, file in (("l", left), ("r", right)):
            db.execute(f"CREATE VIEW {name} AS SELECT *, file_row_number AS n FROM '{file}'")
        db.execute(
            "CREATE TABLE p AS SELECT l.n AS ln, r.n AS rn, l.id AS left_id, r.id AS right_id,"
            " r.amount - l.amount AS away FROM l JOIN r ON l.ref = r.ref"
        )
        db.execute(f"CREATE TABLE m AS SELECT * FROM p WHERE abs(away) <= {WITHIN}")
        _check(
            CASES["one_to_one"],
            lambda sql: db.execute(f"SELECT count(*) FROM ({sql})").fetchall()[0][0],
        )
        copy = "COPY ({}) TO '{}' (COMPRESSION zstd, COMPRESSION_LEVEL 1)"
        columns = (
            "'1-' || ln AS match_id, 'paid' AS rule, '1:1' AS pattern, "
            "left_id, right_id, 1.0::DOUBLE AS score"
        )
        matched = f"SELECT {columns}, false AS ambiguous FROM m ORDER BY ln"
        db.execute(copy.format(matched, out / "matched.parquet"))
        for name, side, other in (("left", "l", "right"), ("right", "r", "left")):
            rest = _explained(db, side, other)
            db.execute(copy.format(rest, out / f"{name}.parquet"))


def _explained(db: duckdb.DuckDBPyConnection, side: str, other: str) -> str:
    best = f"row_number() OVER (PARTITION BY {side}n ORDER BY abs(away), {other}_id) = 1"
    db.execute(
        f"CREATE TABLE near_{side} AS SELECT {side}n AS n, {other}_id AS nearest_id, away FROM p"
        f" WHERE {side}n NOT IN (SELECT {side}n FROM m) QUALIFY {best}"
    )
    return (
        "SELECT x.* EXCLUDE (n), CASE WHEN c.n IS NULL THEN 'no_key'"
        " ELSE 'amount_out_of_tolerance' END AS reason,"
        " CASE WHEN c.n IS NOT NULL THEN 'paid' END AS rule, c.nearest_id,"
        " c.away::DECIMAL(38, 6) AS nearest_difference, NULL::BIGINT AS nearest_days"
        f" FROM {side} AS x LEFT JOIN near_{side} AS c ON c.n = x.n"
        f" WHERE NOT EXISTS (SELECT 1 FROM m WHERE m.{side}n = x.n)"
    )


def in_datafusion(case: str, left: Path, right: Path, out: Path) -> None:
    db = SessionContext(SessionConfig().with_target_partitions(THREADS))
    for name, file in (("l", left), ("r", right)):
        db.register_parquet(name, str(file))
    definition = CASES[case]
    for name, sql in definition.steps:
        db.register_view(name, db.sql(sql).cache())
    _check(definition, lambda sql: db.sql(sql).count())
    db.sql(f"SELECT * FROM m ORDER BY {definition.order}").write_parquet(
        str(out / "matched"), compression="zstd"
    )
    for name, side, key in SIDES:
        rest = f"SELECT x.* FROM {side} AS x LEFT ANTI JOIN m ON m.{key} = x.id ORDER BY x.id"
        db.sql(rest).write_parquet(str(out / name), compression="zstd")


def in_polars(case: str, left: Path, right: Path, out: Path) -> None:
    a, b = pl.scan_parquet(left), pl.scan_parquet(right)
    matched, order = _POLARS[case](a, b)
    matched.sort(order).write_parquet(out / "matched.parquet", compression="zstd")
    for name, side, key in (("left", a, "left_id"), ("right", b, "right_id")):
        rest = side.join(matched.lazy(), left_on="id", right_on=key, how="anti").sort("id")
        rest.collect(engine="streaming").write_parquet(out / f"{name}.parquet", compression="zstd")


BARE: dict[str, Callable[[str, Path, Path, Path], None]] = {
    "duckdb": in_duckdb,
    "duckdb_explained": in_duckdb_explained,
    "datafusion": in_datafusion,
    "polars": in_polars,
}


def _check(definition: Case, count: Callable[[str], int]) -> None:
    for sql in definition.unique:
        if count(sql):
            raise Contested(sql)


def _unique(frame: pl.LazyFrame | pl.DataFrame, column: str) -> None:
    repeated = (
        frame.lazy().group_by(column).len().filter(pl.col("len") > 1).collect(engine="streaming")
    )
    if repeated.height:
        raise Contested(column)


def _near(a: str, b: str) -> pl.Expr:
    return (pl.col(a) - pl.col(b)).abs() <= pl.lit(WITHIN).str.to_decimal(scale=2)


def _one_to_one(a: pl.LazyFrame, b: pl.LazyFrame) -> tuple[pl.DataFrame, list[str]]:
    chosen = [
        pl.col("id").alias("left_id"),
        pl.col("id_right").alias("right_id"),
        "amount",
        "amount_right",
    ]
    matched = (
        a.join(b, on="ref")
        .filter(_near("amount", "amount_right"))
        .select(chosen)
        .collect(engine="streaming")
    )
    _unique(matched, "left_id")
    _unique(matched, "right_id")
    return matched, ["left_id", "right_id"]


def _parts(
    one: pl.LazyFrame, many: pl.LazyFrame, names: tuple[str, str]
) -> tuple[pl.DataFrame, list[str]]:
    _unique(one, "ref")
    sums = many.group_by("ref").agg(pl.col("amount").sum().alias("total"))
    whole = (
        one.join(sums, on="ref")
        .filter(_near("amount", "total"))
        .select(pl.col("id").alias(names[0]), "ref")
    )
    pairs = whole.join(many.select(pl.col("id").alias(names[1]), "ref"), on="ref").select(names)
    return pairs.collect(engine="streaming"), ["left_id", "right_id"]


def _groups(a: pl.LazyFrame, b: pl.LazyFrame) -> tuple[pl.DataFrame, list[str]]:
    keys = ["customer", "currency", "month"]
    left, right = (
        side.with_columns(pl.col("day").dt.truncate("1mo").alias("month")) for side in (a, b)
    )
    owed = left.group_by(keys).agg(
        pl.col("amount").sum().alias("owed"), pl.col("id").min().alias("first")
    )
    paid = right.group_by(keys).agg(pl.col("amount").sum().alias("paid"))
    agree = (
        owed.join(paid, on=keys)
        .filter(pl.col("owed") == pl.col("paid"))
        .select(*keys, "first")
        .collect()
    )
    members = [
        agree.lazy()
        .join(side.select(*keys, "id"), on=keys)
        .select(
            "first", pl.col("id").alias(name), pl.col("id").rank("ordinal").over("first").alias("n")
        )
        for side, name in ((left, "left_id"), (right, "right_id"))
    ]
    pairs = members[0].join(members[1], on=["first", "n"], how="full", coalesce=True)
    return pairs.select("first", "left_id", "right_id").collect(engine="streaming"), [
        "first",
        "left_id",
        "right_id",
    ]


_POLARS: dict[str, Callable[[pl.LazyFrame, pl.LazyFrame], tuple[pl.DataFrame, list[str]]]] = {
    "one_to_one": _one_to_one,
    "splits": lambda a, b: _parts(a, b, ("left_id", "right_id")),
    "batches": lambda a, b: _parts(b, a, ("right_id", "left_id")),
    "groups": _groups,
}
