"""Gets every real part that tests need and this machine lacks: `make fetch`, before `make test`."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from rich.console import Console

from tests.deploy import cluster_schemas, image
from tests.maintenance.readers import DATAFUSION, DUCKDB
from tests.servers import chromium, java, nats, node, pgbouncer, postgres, spark, trino
from tests.servers.parts import Missing
from tests.sources import mariadb

if TYPE_CHECKING:
    from tests.servers.parts import Part

PARTS: tuple[Part, ...] = (
    image.PART,
    trino.PART,
    spark.PART,
    java.FOR_SPARK.part,
    java.FOR_TRINO.part,
    postgres.PART,
    mariadb.PART,
    pgbouncer.PART,
    chromium.PART,
    node.PART,
    nats.PART,
    cluster_schemas.SCHEMAS,
    cluster_schemas.HELM,
    DUCKDB.part,
    DATAFUSION.part,
)
"""The largest ones first: they are fetched side by side."""
AT_ONCE = 4


def main() -> int:
    console = Console(soft_wrap=True, highlight=False, markup=False, stderr=True)
    lacking = [part for part in PARTS if not part.present()]
    if not lacking:
        console.print(f"[fetch] all {len(PARTS)} parts are here")
        return 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        failures = [
            failure for failure in pool.map(lambda part: _get(part, console), lacking) if failure
        ]
    for failure in failures:
        console.print(f"[fetch] {failure}")
    return 1 if failures else 0


def _get(part: Part, console: Console) -> str | None:
    """Why it could not be had, if so."""
    console.print(f"[fetch] {part.name} ...")
    started = time.monotonic()
    try:
        part.fetch()
        part.require()
    except Missing as e:
        return f"{part.name} could not be had: {e}"
    console.print(f"[fetch] {part.name}: {time.monotonic() - started:.0f} s")
    return None


if __name__ == "__main__":
    sys.exit(main())
