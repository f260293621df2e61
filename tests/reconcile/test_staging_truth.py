"""Generated data compared pair by pair with the result of PostgreSQL in exact numerics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from bench.reconcile import generator
from bench.reconcile.cases import CASES, WITHIN

from penstock.reconcile.matching.execution import Execution
from penstock.reconcile.recipes import validation
from tests.graphs.deployment import connected
from tests.reconcile.match_run import recipe

if TYPE_CHECKING:
    from pathlib import Path

ROWS = 20_000
ONE_TO_ONE = (
    "SELECT l.id, r.id FROM invoices l, payments r WHERE l.ref = r.ref"
    f" AND abs(l.amount - r.amount) <= {WITHIN}"
)
PARTS = (
    "SELECT {0}.id AS one, {1}.id AS many FROM {0} JOIN {1} USING (ref) WHERE"
    f" abs({{0}}.amount - (SELECT sum(amount) FROM {{1}} AS x WHERE x.ref = {{0}}.ref)) <= {WITHIN}"
)
TRUTH = {
    "one_to_one": ONE_TO_ONE,
    "splits": PARTS.format("invoices", "payments"),
    "batches": f"SELECT many, one FROM ({PARTS.format('payments', 'invoices')}) AS q",
}


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
@pytest.mark.parametrize("case", TRUTH)
async def test_every_pair_is_one_that_postgresql_finds_and_the_other_way_round(
    database: str, tmp_path: Path, case: str, engine: str
) -> None:
    left, right = generator.CASES[case](tmp_path, ROWS if case != "splits" else ROWS // 3)
    side = validation.read(recipe(rules=[CASES[case].rule]))
    done = Execution(
        recipe=side,
        files={"left": [left], "right": [right]},
        scratch=tmp_path / "work",
        engine=engine,
    )
    matched = [file.path for file in done.run().evidence.files if file.table == "matched"]
    pairs = pq.read_table(matched[0], columns=["left_id", "right_id"])
    async with connected(database) as connection:
        for name, file in (("invoices", left), ("payments", right)):
            rows = pq.read_table(file, columns=["id", "ref", "amount"])
            await connection.execute(
                f"CREATE TABLE {name} (id text, ref text, amount numeric(18, 2))"
            )
            records = zip(*(column.to_pylist() for column in rows.columns), strict=True)
            await connection.copy_records_to_table(name, records=list(records))
            await connection.execute(f"CREATE INDEX ON {name} (ref); ANALYZE {name}")
        truth = sorted(tuple(row) for row in await connection.fetch(TRUTH[case]))
    assert sorted(zip(*(column.to_pylist() for column in pairs.columns), strict=True)) == truth
