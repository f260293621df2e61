"""A REST catalog whose server leaves out snapshots that no branch or tag names, when it is asked
to: their files are live nevertheless.
"""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from penstock.maintenance.actions.model import Ended
from penstock.maintenance.tables.catalog.catalogs import CatalogConfig, open_catalog
from penstock.maintenance.tables.catalog.rest_catalog import RestCatalogAdapter
from tests.maintenance.tables import SampleTable, rows
from tests.servers.http import HttpServer, Request, Response

if TYPE_CHECKING:
    from penstock.maintenance.actions.model import Outcome

REFS = {"snapshot-loading-mode": "refs"}


def serving(catalog: SampleTable, overrides: dict[str, str]) -> HttpServer:
    face = RestCatalogAdapter(catalog.catalog)

    def answer(request: Request) -> dict[str, object]:
        match request.path.removeprefix("/v1/").split("/"):
            case ["config"]:
                return {"defaults": {}, "overrides": overrides}
            case ["namespaces"]:
                return face.namespaces("shop" if "parent=shop" in request.query else None)
            case ["namespaces", namespace, "tables"]:
                return face.tables(namespace)
            case ["namespaces", namespace, "tables", name]:
                loaded = face.table(namespace, name)
                if "snapshots=refs" in request.query:
                    metadata = loaded["metadata"]
                    heads = {ref["snapshot-id"] for ref in metadata["refs"].values()}
                    metadata["snapshots"] = [
                        s for s in metadata["snapshots"] if s["snapshot-id"] in heads
                    ]
                return loaded
        raise AssertionError(request.path)

    async def serve(request: Request) -> Response:
        body = json.dumps(await asyncio.to_thread(answer, request)).encode()
        return Response(body=body, headers={"Content-Type": "application/json"})

    return HttpServer(serve)


@pytest.mark.parametrize(("properties", "overrides"), [(REFS, {}), ({}, REFS)])
async def test_files_of_snapshots_that_no_branch_names_are_no_orphans(
    sample: SampleTable, properties: dict[str, str], overrides: dict[str, str]
) -> None:
    sample.create()
    sample.table.overwrite(rows(0, 50_000))
    ids = [snapshot.snapshot_id for snapshot in sample.table.metadata.snapshots]
    before = [sample.ids(snapshot_id) for snapshot_id in ids]

    def clean(uri: str) -> Outcome:
        config = CatalogConfig(name="far", type="rest", uri=uri, properties=properties)
        far = SampleTable(open_catalog(config))
        done = far.run("remove_orphan_files", now=lambda: datetime.now(UTC) + timedelta(days=10))
        far.catalog.close()
        return done

    async with serving(sample, overrides) as server:
        done = await asyncio.to_thread(clean, f"http://127.0.0.1:{server.port}")
    assert done.status is Ended.NOTHING_TO_DO, done.message
    assert [sample.ids(snapshot_id) for snapshot_id in ids] == before
