"""More records than memory: five million against 4.75 million in 512 MB."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import duckdb

if TYPE_CHECKING:
    from pathlib import Path

MEMORY = 512_000_000
LEFT, RIGHT, PAID = 5_000_000, 4_750_000, 3_000_000
AROUND_THE_ENGINE = 448 * 1024**2
"""Python and its libraries (150 MB before it begins), a row group in each direction, and the
engine's allocator; measured: 391 to 400 MiB, as the kernel counts mapped libraries."""


def test_five_million_records_are_matched_in_half_a_gigabyte(tmp_path: Path) -> None:
    left, right = _written(tmp_path)
    command = [
        sys.executable,
        "-m",
        "tests.reconcile.measured_match",
        left,
        right,
        str(tmp_path / "scratch"),
        str(MEMORY),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    manifest = json.loads(done.stdout)
    assert manifest["counts"] == {
        "left": [LEFT, PAID, LEFT - PAID],
        "right": [RIGHT, PAID, RIGHT - PAID],
    }
    assert manifest["peak"] < MEMORY + AROUND_THE_ENGINE


def _written(folder: Path) -> tuple[str, str]:
    """Every payment has an invoice, in another order; the last ones are a unit too much."""
    files = {side: str(folder / f"{side}.parquet") for side in ("left", "right")}
    amount = "CAST(ref % 100000 + 1 + extra AS DECIMAL(18, 2))"
    columns = (
        f"key AS id, printf('R%09d', ref) AS ref, {amount} AS amount, "
        "printf('a note on %d', ref) AS note"
    )
    rows = {
        "left": (
            f"SELECT printf('INV-%09d', i) AS key, i AS ref, 0 AS extra FROM range({LEFT}) AS t(i)"
        ),
        "right": "SELECT printf('PAY-%09d', i) AS key, ref,"
        f" CASE WHEN ref < {PAID} THEN 0 ELSE 1 END AS extra"
        f" FROM (SELECT i, i * 7919 % {RIGHT} AS ref FROM range({RIGHT}) AS t(i))",
    }
    with duckdb.connect() as db:
        for side, file in files.items():
            db.execute(f"COPY (SELECT {columns} FROM ({rows[side]})) TO '{file}'")
    return files["left"], files["right"]
