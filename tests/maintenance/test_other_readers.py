from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyiceberg.types import LongType

from penstock.maintenance.actions.model import Ended
from penstock.maintenance.tables.catalog.catalogs import CatalogConfig, open_catalog
from tests.maintenance.readers import DATAFUSION, DUCKDB, Reader
from tests.maintenance.tables import COMPACT, LATER, SampleTable

if TYPE_CHECKING:
    from collections.abc import Iterator

ALL = (
    {"name": "expire_snapshots", "older_than_seconds": 0, "retain_last": 1},
    COMPACT,
    "rewrite_position_delete_files",
    "rewrite_manifests",
    "remove_orphan_files",
)


def everything(sample: SampleTable) -> None:
    """Flat; every action, deletes applied."""
    sample.create()
    sample.delete([3, 14])
    ended = [sample.run(action, now=lambda: LATER).status for action in ALL]
    assert not {Ended.REFUSED, Ended.FAILED, Ended.ABANDONED, Ended.UNKNOWN} & set(ended)


def some_of_it(sample: SampleTable) -> None:
    """Partitioned; one partition rewritten, the deletes of the others merged and still pending,
    history expired."""
    sample.create(partitioned=True)
    sample.delete([3, 14])
    sample.delete([17, 20, 21])
    for action in (
        {**COMPACT, "where": "day = 'd0'"},
        "rewrite_position_delete_files",
        "rewrite_manifests",
        ALL[0],
    ):
        assert sample.run(action, now=lambda: LATER).status is Ended.COMPLETED


def on_a_curve(sample: SampleTable) -> None:
    sample.create()
    assert sample.run({**COMPACT, "sort_order": "zorder(id, at)"}).status is Ended.COMPLETED


def of_two_schemas(sample: SampleTable) -> None:
    sample.create()
    with sample.table.update_schema() as change:
        change.add_column("extra", LongType())
    sample.append_as_now(1000)
    assert sample.run(COMPACT).status is Ended.COMPLETED


@pytest.fixture(scope="module")
def maintained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[SampleTable]]:
    folder = tmp_path_factory.mktemp("lake")
    uri, warehouse = f"sqlite:///{folder}/catalog.db", (folder / "warehouse").as_uri()
    catalog = open_catalog(
        CatalogConfig(name="lake", type="sql", uri=uri, properties={"warehouse": warehouse})
    )
    stands = []
    for make in (everything, some_of_it, on_a_curve, of_two_schemas):
        stands.append(SampleTable(catalog, ("shop", make.__name__)))
        make(stands[-1])
    yield stands
    catalog.close()


@pytest.mark.parametrize("reader", [DUCKDB, DATAFUSION], ids=lambda reader: reader.name)
def test_another_implementation_reads_every_row_of_every_maintained_table(
    maintained: list[SampleTable], reader: Reader
) -> None:
    tables = reader.read([sample.table.metadata_location for sample in maintained])
    assert [len(rows) for rows in tables] == [58, 55, 60, 61]
    for sample, rows in zip(maintained, tables, strict=True):
        assert rows == [
            [r["id"], r["day"], r["note"], _micros(r["at"])] for r in sample.all_rows()
        ], sample.name


def _micros(at: object) -> int | None:
    return None if at is None else round(at.timestamp() * 1_000_000)
