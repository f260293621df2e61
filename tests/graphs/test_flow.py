"""From a snapshot's jobs to its manifest, through the API and a worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from tests.graphs.deployment import CUSTOMER, PURCHASED

if TYPE_CHECKING:
    from tests.graphs.deployment import Deployment


async def test_a_snapshot_is_ready_when_its_last_export_is_with_exact_counts_and_types(
    deployment: Deployment, duck: int
) -> None:
    snapshot_id = await deployment.snapshot(
        CUSTOMER | {"data_source_id": duck}, PURCHASED | {"data_source_id": duck}
    )
    async with deployment.working():
        snapshot = await deployment.ready(snapshot_id)
    assert snapshot.node_counts == {"Customer": 1000}
    assert snapshot.edge_counts == {"PURCHASED": 3000}
    customers = await deployment.table(snapshot, "nodes/Customer")
    assert customers.schema.types == [pa.int64(), pa.string(), pa.int64()]
    assert customers["id"].to_pylist() == list(range(1000))
    assert snapshot.size_bytes == sum(
        [i.size async for i in deployment.store.list("") if i.key.endswith(".parquet")]
    )
    assert snapshot.ready_at is not None
    assert snapshot.error_message is None
