"""Creates benchmark tables with many small files. The files are written once and shared by the
tables of all implementations, because none deletes them."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.manifest import ManifestContent
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DoubleType, LongType, NestedField, StringType

from penstock.maintenance.actions.context import ActionContext
from penstock.maintenance.tables.catalog.catalogs import CatalogConfig, open_catalog
from penstock.maintenance.tables.catalog.table_access import CatalogTableAccess
from penstock.maintenance.tables.commit.replacement import commit
from penstock.maintenance.tables.commit.snapshot_draft import existing_entry
from penstock.maintenance.tables.reading.content import ManifestReader

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pyiceberg.catalog import Catalog
    from pyiceberg.manifest import ManifestFile

    from penstock.maintenance.tables.commit.snapshot_draft import Draft
    from penstock.maintenance.tables.reading.content import Content

DAYS = 10
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "day", LongType(), required=False),
    NestedField(3, "customer", LongType(), required=False),
    NestedField(4, "amount", DoubleType(), required=False),
    NestedField(5, "status", StringType(), required=False),
    NestedField(6, "payload", StringType(), required=False),
)
BY_DAY = PartitionSpec(
    PartitionField(source_id=2, field_id=1000, transform=IdentityTransform(), name="day")
)


def catalog(folder: Path) -> Catalog:
    folder.mkdir(parents=True, exist_ok=True)
    properties = {"warehouse": (folder / "warehouse").as_uri()}
    config = CatalogConfig(
        name="bench", type="sql", uri=f"sqlite:///{folder}/catalog.db", properties=properties
    )
    opened = open_catalog(config)
    opened.create_namespace_if_not_exists("bench")
    return opened


def files(folder: Path, count: int, rows: int, *, payload: int) -> list[str]:
    """Write Parquet files of `rows` rows; `payload` is the number of extra bytes per row."""
    folder.mkdir(parents=True)
    rng, paths = np.random.default_rng(7), []
    for n in range(count):
        path = folder / f"{n:05d}.parquet"
        pq.write_table(_rows(rng, n * rows, rows, n % DAYS, payload), path, compression="zstd")
        paths.append(path.as_uri())
    return paths


def _rows(rng: np.random.Generator, start: int, count: int, day: int, payload: int) -> pa.Table:
    noise = rng.integers(0, 16, (count, payload), dtype=np.uint8) + ord("a")
    texts = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(payload), count, [None, pa.py_buffer(noise.tobytes())]
    )
    status = pa.array(["open", "paid", "sent", "gone"]).take(pa.array(rng.integers(0, 4, count)))
    return pa.table(
        {
            "id": pa.array(np.arange(start, start + count)),
            "day": pa.array(np.full(count, day, dtype=np.int64)),
            "customer": pa.array(rng.integers(0, 50_000, count)),
            "amount": pa.array(rng.random(count)),
            "status": status,
            "payload": texts.cast(pa.binary()).cast(pa.string()),
        }
    )


def table(
    opened: Catalog, name: str, paths: list[str], *, partitioned: bool, target: int, manifests: int
) -> None:
    """Create a table over the files with `manifests` manifests, as after as many appends."""
    spec = BY_DAY if partitioned else UNPARTITIONED_PARTITION_SPEC
    properties = {
        "write.target-file-size-bytes": str(target),
        "write.parquet.compression-codec": "zstd",
    }
    opened.create_table(
        ("bench", name), SCHEMA, partition_spec=spec, properties=properties
    ).add_files(paths)
    table_access, run = (
        CatalogTableAccess(opened, ("bench", name)),
        ActionContext(job_id=0, attempt=uuid4().hex),
    )

    def build(draft: Draft, head: Content) -> tuple[Sequence[ManifestFile], Mapping[str, str]]:
        share = max(1, ceil(len(head.data) / manifests))
        pieces = [head.data[at : at + share] for at in range(0, len(head.data), share)]
        written = [
            draft.manifest(
                piece[0].data_file.spec_id,
                ManifestContent.DATA,
                [existing_entry(entry) for entry in piece],
            )
            for piece in pieces
        ]
        return written, {}

    commit(table_access, run, ManifestReader(table_access.load().io), build)


def snapshots(opened: Catalog, name: str, path: str, count: int) -> None:
    """Add `count` commits, each with its own manifest, like appends."""
    opened.create_table(("bench", name), SCHEMA).add_files([path])
    table_access, run = (
        CatalogTableAccess(opened, ("bench", name)),
        ActionContext(job_id=0, attempt=uuid4().hex),
    )
    reader = ManifestReader(table_access.load().io)

    def build(draft: Draft, head: Content) -> tuple[Sequence[ManifestFile], Mapping[str, str]]:
        [file, *_] = [entry.data_file for entry in head.data]
        number = draft.table.metadata.next_sequence_number()
        manifest = draft.manifest(file.spec_id, ManifestContent.DATA, [draft.added(file, number)])
        return [manifest, *head.manifests], {}

    for _ in range(count):
        commit(table_access, run, reader, build)
