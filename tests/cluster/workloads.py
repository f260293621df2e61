"""The three workloads, as a user drives them: through the API, with the client."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pyarrow as pa
from bench.figures import figure
from pyiceberg.catalog.rest import RestCatalog

from penstock.client import node
from tests.cluster.failures import ClusterFailed
from tests.cluster.machine import NODE_IP
from tests.cluster.program import wait_until

if TYPE_CHECKING:
    from bench.figures import Figure

    from penstock.client import Client
    from penstock.client.definitions import Node
    from tests.cluster.installation import Installation
    from tests.cluster.outside import Outside

WAREHOUSE = "warehouse"
_LABELS, _PEOPLE = 8, 400_000
_INVOICES, _UNPAID = 200_000, 100
_WRITES = 20
_RECIPE: dict[str, Any] = {
    "recipe_id": "invoices-vs-payments",
    "name": "Invoices against payments",
    "sources": {
        "left": {"source": WAREHOUSE, "table": "invoices", "primary_key": ["id"]},
        "right": {"source": WAREHOUSE, "table": "payments", "primary_key": ["id"]},
    },
    "compare": [{"left": "amount", "right": "amount"}],
    "rules": [
        {
            "name": "to the cent",
            "conditions": [
                {"left": "id", "op": "eq", "right": "id"},
                {"left": "amount", "op": "eq", "right": "amount"},
            ],
        }
    ],
}
_GONE_SECONDS = 180.0


def graph(installation: Installation, outside: Outside) -> dict[str, Figure]:
    """Eight labels are eight exports; the graph answers Cypher from a pod of its own."""
    outside.execute(
        "CREATE TABLE people AS SELECT id, md5(id::text) AS name"
        f" FROM generate_series(1, {_PEOPLE}) AS id",
        database=WAREHOUSE,
    )
    with installation.client() as ps:
        mapping = ps.mappings.create("People", nodes=_groups(), data_source=_source(ps, outside))
        started = time.monotonic()
        people = mapping.start("people", ttl="1h", progress=False)
        seconds = time.monotonic() - started
        counts = [
            people.query(f"MATCH (p:Group{group}) RETURN count(p)").scalar()
            for group in range(_LABELS)
        ]
        _expect(counts, [_PEOPLE // _LABELS] * _LABELS, "people in the graph, by label")
        jobs = [job.status for job in ps.jobs.list(kind="export")]
        _expect(jobs, ["succeeded"] * _LABELS, "export jobs")
        people.terminate()
    wait_until(
        lambda: not installation.pods(app="graph-instance"),
        "the graph's pod is gone",
        within=_GONE_SECONDS,
    )
    return {"graph_running": figure(seconds, "s")}


def reconciliation(installation: Installation, outside: Outside) -> dict[str, Figure]:
    """Two tables are staged and matched; every record is on one side of the totals."""
    outside.execute(
        "CREATE TABLE invoices AS SELECT id, (id % 1000)::numeric(12, 2) AS amount"
        f" FROM generate_series(1, {_INVOICES}) AS id",
        f"CREATE TABLE payments AS SELECT * FROM invoices WHERE id % {_UNPAID} <> 0",
        database=WAREHOUSE,
    )
    with installation.client() as ps:
        _source(ps, outside)
        ps.reconcile.save(_RECIPE)
        started = time.monotonic()
        run = ps.reconcile.run(_RECIPE["recipe_id"]).wait(progress=False)
        seconds = time.monotonic() - started
    unpaid = _INVOICES // _UNPAID
    _expect(
        {side: (run.totals[side]["matched"], run.totals[side]["unmatched"]) for side in run.totals},
        {"left": (_INVOICES - unpaid, unpaid), "right": (_INVOICES - unpaid, 0)},
        "matched and unmatched records",
    )
    return {"reconciliation_run": figure(seconds, "s")}


def maintenance(installation: Installation, outside: Outside) -> dict[str, Figure]:
    """A table of many small files becomes one file of the same rows."""
    storage = outside.storage
    catalog = RestCatalog(
        "lake",
        uri=f"{installation.url()}/api/iceberg/lake",
        token=installation.operator_token,
        **{
            "s3.endpoint": storage.endpoint,
            "s3.access-key-id": storage.access_key,
            "s3.secret-access-key": storage.secret_key,
            "s3.region": "us-east-1",
        },
    )
    catalog.create_namespace("shop")
    schema = pa.schema([("id", pa.int64())])
    table = catalog.create_table("shop.events", schema)
    for write in range(_WRITES):
        table.append(pa.table({"id": range(write * 100, write * 100 + 100)}, schema))
    with installation.client() as ps:
        started = time.monotonic()
        events = ps.tables["lake.shop.events"]
        events.maintain([{"name": "rewrite_data_files", "force": True}]).wait(progress=False)
        seconds = time.monotonic() - started
    table.refresh()
    _expect(table.inspect.files().num_rows, 1, "data files after compaction")
    rows = sorted(table.scan().to_arrow()["id"].to_pylist())
    _expect(rows == list(range(_WRITES * 100)), True, "whether all rows are there, once each")
    return {"maintenance_run": figure(seconds, "s")}


def _source(ps: Client, outside: Outside) -> int:
    """The warehouse among the data sources; it stays there."""
    for source in ps.sources.list():
        if source.name == WAREHOUSE:
            return source.id
    parts = urlsplit(outside.database)
    config = {
        "host": NODE_IP,
        "port": parts.port,
        "database": WAREHOUSE,
        "user": parts.username,
        "sslmode": "disable",
    }
    return ps.sources.create(WAREHOUSE, "postgres", config, {"password": str(parts.password)}).id


def _groups() -> list[Node]:
    return [
        node(
            f"Group{group}",
            f"SELECT id, name FROM people WHERE id % {_LABELS} = {group}",
            "id",
            "INT64",
            name="STRING",
        )
        for group in range(_LABELS)
    ]


def _expect(actual: object, expected: object, what: str) -> None:
    if actual != expected:
        raise ClusterFailed(f"{what}: {actual!r}, not {expected!r}")


WORKLOADS = {"graph": graph, "reconciliation": reconciliation, "maintenance": maintenance}
