"""Joins, groups and windows of match_sql on every engine, over hostile values of every type,
against plain Python."""

from __future__ import annotations

import random
from functools import cmp_to_key
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from penstock.engines.contract import EngineLimits
from penstock.engines.registry import ENGINES, open_engine
from penstock.reconcile.match_sql.queries import compiled
from penstock.reconcile.matching.column import columns
from tests.reconcile.oracle.expressions import NUMBERS, one_zero, ordered, rows, table
from tests.reconcile.oracle.sheet import _plain as plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from penstock.engines.contract import Engine

    Row = dict[str, Any]

KEYS = ["i", "j", "u", "d", "e", "w", "f", "s", "b", "day", "ts", "tz"]
SEEDS = [1, 2]


@pytest.fixture(params=sorted(ENGINES))
def engines(
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> Iterator[list[tuple[Engine, list[Row]]]]:
    """The engine with the rows of each seed, as it has them on both sides."""
    pairs = []
    for seed in SEEDS:
        folder = tmp_path / str(seed)
        (folder / "engine").mkdir(parents=True)
        values = table(random.Random(seed))
        pq.write_table(values, folder / "rows.parquet")
        engine = open_engine(
            request.param,
            folder / "engine",
            EngineLimits(memory_bytes=256 * 1024**2),
        )
        for side in ("left", "right"):
            engine.relation(f"{side}_rows", [folder / "rows.parquet"])
        records = rows(values)
        for row in records:
            row["f"] = None if row["f"] is None else one_zero(row["f"])
        pairs.append((engine, records))
    yield pairs
    for engine, _ in pairs:
        engine.__exit__()


def answer(engine: Engine, sql: str) -> list[tuple[str, ...]]:
    schema = pq.read_schema(engine.scratch.parent / "rows.parquet")
    schema_columns = columns(schema)
    query = compiled(sql, engine.dialect, "UTC", {"left": schema_columns, "right": schema_columns})
    chosen = ", ".join(name for _, name, _ in query.columns)
    read = engine.rows(f"SELECT {chosen} FROM ({query.sql}) AS q")
    return sorted(tuple(map(plain, row)) for row in read)


def meant(records: Sequence[Sequence[Any]]) -> list[tuple[str, ...]]:
    return sorted(tuple(map(plain, row)) for row in records)


def groups(records: Sequence[Row], key: str) -> list[list[Row]]:
    grouped: dict[Any, list[Row]] = {}
    for row in records:
        value = row[key]
        grouped.setdefault(None if value is None else (ordered(value),), []).append(row)
    return list(grouped.values())


def present(records: Sequence[Row], column: str) -> list[Any]:
    return [row[column] for row in records if row[column] is not None]


def comparer(column: str, *, descending: bool, nulls_first: bool) -> Callable[[Row, Row], int]:
    def compare(a: Row, b: Row) -> int:
        x, y = a[column], b[column]
        if x is None or y is None:
            return 0 if x is y else (-1 if (x is None) == nulls_first else 1)
        order = (ordered(x) > ordered(y)) - (ordered(x) < ordered(y))
        return -order if descending else order

    return compare


@pytest.mark.parametrize("key", KEYS)
def test_groups_are_the_same_on_every_engine(
    engines: list[tuple[Engine, list[Row]]],
    key: str,
) -> None:
    for engine, records in engines:
        for column in ("i", "d", "ts", "s", "day"):
            added = column in ("i", "d")
            total = f", sum({column})" if added else ""
            ends = f"min({column}), max({column})"
            counts = f"count(*), count({column}), count(DISTINCT {column})"
            sql = f"SELECT {key}, {counts}, {ends}{total} FROM left_src GROUP BY {key}"
            results = []
            for group in groups(records, key):
                values = sorted(present(group, column), key=ordered)
                first_last = [values[0], values[-1]] if values else [None, None]
                distinct = len({ordered(value) for value in values})
                sums = [sum(values) if values else None] if added else []
                results.append(
                    [group[0][key], len(group), len(values), distinct, *first_last, *sums]
                )
            assert answer(engine, sql) == meant(results), (engine.name, column)


@pytest.mark.parametrize("key", KEYS)
def test_joins_are_the_same_on_every_engine(
    engines: list[tuple[Engine, list[Row]]],
    key: str,
) -> None:
    for engine, records in engines:
        sql = "SELECT l.id, r.id FROM left_src l {0} JOIN right_src r ON l.{1} {2} r.{1}"
        equal = [
            (a["id"], b["id"])
            for a in records
            for b in records
            if a[key] is not None and b[key] is not None and ordered(a[key]) == ordered(b[key])
        ]
        alone = [(row["id"], None) for row in records if row[key] is None]
        missing = [row["id"] for row in records if row[key] is None]
        same = [(a, b) for a in missing for b in missing]
        assert answer(engine, sql.format("", key, "=")) == meant(equal), engine.name
        assert answer(engine, sql.format("LEFT", key, "=")) == meant(equal + alone), engine.name
        null_safe = sql.format("", key, "IS NOT DISTINCT FROM")
        assert answer(engine, null_safe) == meant(equal + same), engine.name
        chosen = f"SELECT DISTINCT {key} FROM left_src"
        distinct = [[group[0][key]] for group in groups(records, key)]
        assert answer(engine, chosen) == meant(distinct), engine.name
        united = f"SELECT {key} FROM left_src UNION SELECT {key} FROM right_src WHERE b"
        assert answer(engine, united) == meant(distinct), engine.name


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("descending", [False, True])
def test_windows_are_the_same_on_every_engine(
    engines: list[tuple[Engine, list[Row]]],
    key: str,
    descending: bool,
) -> None:
    for number, (engine, records) in enumerate(engines):
        nulls_first = number % 2 == 1
        way = f"{'DESC' if descending else 'ASC'}{' NULLS FIRST' if nulls_first else ''}"
        over = f"OVER (PARTITION BY b ORDER BY {key} {way})"
        sql = (
            f"SELECT id, rank() {over}, dense_rank() {over}, row_number() {over}, lag(s, 2) {over},"
            f" lead(d) {over}, first_value(id) {over}, sum(j) {over},"
            f" count(*) {over}, max(s) OVER (PARTITION BY b)"
            " FROM left_src"
        )
        compare = comparer(key, descending=descending, nulls_first=nulls_first)
        results = []
        for group in groups(records, "b"):
            line = sorted(group, key=cmp_to_key(compare))
            texts = sorted(present(group, "s"), key=ordered)
            for place, row in enumerate(line):
                ahead = [other for other in line if compare(other, row) < 0]
                peers = [other for other in line if compare(other, row) <= 0]
                ranks = {tuple(o["id"] for o in line if compare(o, a) == 0) for a in ahead}
                total = present(peers, "j")
                results.append(
                    [
                        *(row["id"], len(ahead) + 1, len(ranks) + 1, place + 1),
                        line[place - 2]["s"] if place >= 2 else None,
                        line[place + 1]["d"] if place + 1 < len(line) else None,
                        *(line[0]["id"], sum(total) if total else None, len(peers)),
                        texts[-1] if texts else None,
                    ]
                )
        assert answer(engine, sql) == meant(results), engine.name


def test_the_rows_have_what_they_are_for() -> None:
    """Columns without equals or nulls would prove little of ties."""
    for seed in SEEDS:
        records = rows(table(random.Random(seed)))
        for key in KEYS:
            assert len(groups(records, key)) < len(records), key
        assert any(row[key] is None for row in records for key in NUMBERS)
