"""`penstock table|maintain`: inspects and maintains Iceberg tables, over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.cli.graphs import print_document, print_table
from penstock.cli.home import connect
from penstock.cli.output import Json, emit, out, patience
from penstock.client.errors import Invalid

if TYPE_CHECKING:
    from penstock.client import Client
    from penstock.client._sync.tables import Table

TABLE = ("catalog", "db", "table", "enabled", "score", "seen_at", "error")
ACTION = ("action", "status", "ended_at", "result")


def list_tables(*, json: Json = False) -> int:
    """List tables."""
    with connect() as ps:
        return print_table(list(ps.tables.all()), TABLE, json=json)


def health(name: str, *, json: Json = False) -> int:
    """Show a table's health, with reasons: `penstock table health lake.sales.orders`."""
    with connect() as ps, patience(f"Looking at {name}"):
        report = _table(ps, name).health()
    return print_document(report, json=json)


def recommendation(name: str, *, json: Json = False) -> int:
    """Recommend maintenance for a table."""
    with connect() as ps, patience(f"Looking at {name}"):
        advice = _table(ps, name).recommendation()
    return print_document(advice, json=json)


def history(name: str, *, json: Json = False) -> int:
    """Show a table's maintenance history."""
    with connect() as ps:
        return print_table(
            _table(ps, name).history(), ("job_id", "status", "created_at", "finished_at"), json=json
        )


def maintain(
    name: str, *actions: str, dry_run: bool = False, wait: bool = True, json: Json = False
) -> int:
    """Maintain a table: compact, expire, manifests, deletes, orphans, or full action names."""
    with connect() as ps:
        if dry_run:
            with patience(f"Planning for {name}"):
                planned = _table(ps, name).plan(actions or ("compact",))
            return print_document(planned, json=json)
        job = _table(ps, name).maintain(actions or ("compact", "expire"))
        if wait:
            job.wait()
        done = job.actions()
    if wait:
        return print_table(done, ACTION, json=json)
    emit(
        job.data,
        as_json=json,
        render=lambda: out.print(f"Job {job.id} is {job.status}: penstock job show {job.id}"),
    )
    return 0


def _table(ps: Client, name: str) -> Table:
    try:
        return ps.tables[name]
    except KeyError as e:
        raise Invalid(f"{e.args[0]}.", code="USAGE", status=422) from None
