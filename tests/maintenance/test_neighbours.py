"""Tables that may share a location: found in every namespace and catalog, readable or not, and in
the storage itself.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyiceberg.table.update import SetLocationUpdate

from penstock.maintenance.actions.leftovers import remove_leftovers
from penstock.maintenance.actions.model import Ended, parse
from penstock.maintenance.engines.adoption import check_elsewhere
from penstock.maintenance.errors import Refused
from penstock.maintenance.tables.assessment.facts import look
from penstock.maintenance.tables.assessment.tier import Tier
from penstock.maintenance.tables.catalog.catalogs import (
    CatalogConfig,
    all_namespaces,
    all_tables,
    open_catalog,
)
from penstock.maintenance.tables.catalog.table_access import CatalogTableAccess, FencedTableAccess
from penstock.maintenance.tables.ownership.neighbors import TablePointer
from tests.maintenance.tables import COMPACT, LATER, SCHEMA, SampleTable, rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyiceberg.catalog import Catalog

    from penstock.maintenance.actions.model import Outcome
    from penstock.maintenance.tables.catalog.table_access import TableAccess

ORPHANS = "remove_orphan_files"


def folder_of(sample: SampleTable) -> Path:
    return Path(sample.table.location().removeprefix("file://"))


def beside(
    sample: SampleTable,
    *name: str,
    location: str | None = None,
    files: int = 2,
    **properties: str,
) -> SampleTable:
    """Another table of the catalog."""
    sample.catalog.create_namespace_if_not_exists(name[:-1])
    sample.catalog.create_table(name, SCHEMA, location=location, properties=properties)
    other = SampleTable(sample.catalog, name)
    for number in range(files):
        other.table.append(rows(number * 10, 10))
    return other


def inside(sample: SampleTable, folder: str) -> str:
    return f"{sample.table.location()}/{folder}"


def age_all(*folders: Path) -> None:
    for folder in folders:
        for path in folder.rglob("*"):
            os.utime(path, (0, 0))


def fenced_table_access(sample: SampleTable) -> FencedTableAccess:
    """As the worker has it: the pointers come from somebody else."""

    def others() -> list[TablePointer]:
        with sample.catalog.engine.connect() as connection:
            sql = "SELECT table_namespace, table_name, metadata_location FROM iceberg_tables"
            pointers = connection.exec_driver_sql(sql).all()
        own = (".".join(sample.name[:-1]), sample.name[-1])
        return [
            TablePointer(name=f"{namespace}.{name}", metadata_location=location)
            for namespace, name, location in pointers
            if (namespace, name) != own
        ]

    return FencedTableAccess(
        sample.name,
        properties={},
        current=lambda: sample.table.metadata_location,
        swap=lambda _old, _new: False,
        others=others,
        context=sample.attempt(),
    )


@pytest.fixture(params=["catalog", "pointer"])
def access(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def table_access_of(sample: SampleTable, access: str) -> TableAccess:
    return sample.table_access if access == "catalog" else fenced_table_access(sample)


def orphans(sample: SampleTable, access: str, **run: object) -> Outcome:
    from penstock.maintenance.engines import embedded

    [action] = parse([ORPHANS])
    return embedded.execute(table_access_of(sample, access), sample.attempt(**run), action)


@pytest.mark.parametrize(
    "name",
    [("shop", "inner"), ("shop", "deep", "inner"), ("far", "deeper", "still", "inner")],
    ids=".".join,
)
def test_a_table_of_any_namespace_inside_the_location_is_not_touched(
    sample: SampleTable, access: str, name: tuple[str, ...]
) -> None:
    sample.create()
    inner = beside(sample, *name, location=inside(sample, "inner"))
    age_all(folder_of(sample))
    done = orphans(sample, access)
    assert (done.status, ".".join(name) in done.message) == (Ended.REFUSED, True)
    assert len(inner.ids()) == 20


def test_a_table_inside_another_one_is_refused_too(sample: SampleTable, access: str) -> None:
    sample.create()
    inner = beside(sample, "a", "b", "inner", location=inside(sample, "data"))
    age_all(folder_of(sample))
    done = orphans(inner, access)
    assert (done.status, "shop.orders" in done.message) == (Ended.REFUSED, True)
    assert len(sample.ids()) == 60


@pytest.mark.parametrize(
    "alias",
    ["file:{path}/inner", "file://{path}/x/../inner/", "file://{link}/inner"],
)
def test_the_spelling_of_the_other_location_does_not_matter(
    sample: SampleTable, tmp_path: Path, access: str, alias: str
) -> None:
    sample.create()
    path, link = folder_of(sample), tmp_path / "link"
    link.symlink_to(path)
    (path / "x").mkdir()
    beside(sample, "a", "inner", location=alias.format(path=path, link=link))
    age_all(path)
    assert orphans(sample, access).status is Ended.REFUSED


@pytest.mark.parametrize(
    "name",
    ["write.data.path", "write.metadata.path", "write.object-storage.path"],
)
def test_a_table_that_writes_into_the_location_is_not_touched(
    sample: SampleTable,
    access: str,
    name: str,
) -> None:
    sample.create()
    other = beside(sample, "a", "b", "guest", **{name: inside(sample, "guests")})
    age_all(folder_of(sample))
    done = orphans(sample, access)
    assert (done.status, "a.b.guest" in done.message) == (Ended.REFUSED, True)
    assert len(other.ids()) == 20


def test_a_table_that_was_moved_away_keeps_the_files_that_it_left(
    sample: SampleTable,
    tmp_path: Path,
    access: str,
) -> None:
    """Its location is another one by now; its older manifest lists are still here."""
    moved = beside(sample, "shop", "moved", location=f"file://{tmp_path}/w/t")
    move = SetLocationUpdate(location=f"file://{tmp_path}/w/elsewhere")
    sample.catalog.commit_table(moved.table, (), (move,))
    moved.table.append(rows(20, 10))
    ours = beside(sample, "shop", "ours", location=f"file://{tmp_path}/w/t", files=6)
    age_all(tmp_path / "w")
    done = orphans(ours, access)
    assert (done.status, "shop.moved" in done.message) == (Ended.REFUSED, True)
    assert len(moved.ids()) == 30


def spoil(other: SampleTable, how: str) -> None:
    path = Path(other.table.metadata_location.removeprefix("file://"))
    if how == "gone":
        path.unlink()
    else:
        path.write_text('{"format-version": 2, "location"' if how == "cut" else "nonsense")


@pytest.mark.parametrize("how", ["gone", "cut", "nonsense"])
def test_a_table_that_cannot_be_read_does_not_stand_in_the_way_of_one_that_is_far(
    sample: SampleTable, access: str, how: str
) -> None:
    sample.create()
    spoil(beside(sample, "a", "b", "broken"), how)
    junk = folder_of(sample) / "data" / "junk"
    junk.write_bytes(b"x")
    age_all(folder_of(sample))
    done = orphans(sample, access)
    assert (done.status, done.deleted_files) == (Ended.COMPLETED, 1), done.message
    assert not junk.exists()


@pytest.mark.parametrize("how", ["gone", "cut"])
@pytest.mark.parametrize("place", ["inner", "data/inner", ".."])
def test_a_table_that_cannot_be_read_protects_what_is_near_it(
    sample: SampleTable,
    access: str,
    how: str,
    place: str,
) -> None:
    sample.create()
    spoil(beside(sample, "a", "b", "broken", location=inside(sample, place)), how)
    age_all(folder_of(sample))
    files = sorted(folder_of(sample).rglob("*"))
    done = orphans(sample, access)
    assert (done.status, "a.b.broken" in done.message) == (Ended.REFUSED, True)
    assert sorted(folder_of(sample).rglob("*")) == files


@contextmanager
def another_catalog(tmp_path: Path, name: str, database: str) -> Iterator[Catalog]:
    uri, properties = f"sqlite:///{tmp_path}/{database}", {"warehouse": tmp_path.as_uri()}
    catalog = open_catalog(CatalogConfig(name=name, type="sql", uri=uri, properties=properties))
    yield catalog
    catalog.close()


def test_a_table_of_another_catalog_in_the_same_database_is_found(
    sample: SampleTable,
    tmp_path: Path,
) -> None:
    sample.create()
    with another_catalog(tmp_path, "second", "catalog.db") as second:
        beside(SampleTable(second), "a", "guest", **{"write.data.path": inside(sample, "guests")})
    age_all(folder_of(sample))
    done = sample.run(ORPHANS)
    assert (done.status, "second.a.guest" in done.message) == (Ended.REFUSED, True)


def test_a_table_of_a_catalog_that_we_do_not_know_is_recognized_by_its_metadata(
    sample: SampleTable,
    tmp_path: Path,
) -> None:
    sample.create()
    with another_catalog(tmp_path, "unknown", "other.db") as unknown:
        inner = beside(SampleTable(unknown), "a", "inner", location=inside(sample, "inner"))
        age_all(folder_of(sample))
        done = sample.run(ORPHANS)
        assert (done.status, "inner/metadata" in done.message) == (Ended.REFUSED, True)
        facts = look(sample.table, Tier.STORAGE, now=LATER)
        assert facts.orphan_files is None, "what cannot be told is not 0"
        assert len(inner.ids()) == 20


def test_a_location_in_that_of_an_unknown_table_is_recognized(
    sample: SampleTable, tmp_path: Path
) -> None:
    with another_catalog(tmp_path, "unknown", "other.db") as unknown:
        outer = beside(
            SampleTable(unknown), "a", "outer", location=f"file://{tmp_path}/w/outer", files=6
        )
        ours = beside(sample, "shop", "ours", location=f"file://{tmp_path}/w/outer/data")
        age_all(tmp_path / "w")
        done = ours.run(ORPHANS)
        assert (done.status, "outer/metadata" in done.message) == (Ended.REFUSED, True)
        assert len(outer.ids()) == 60


def test_what_the_control_plane_knows_of_other_catalogs_counts(sample: SampleTable) -> None:
    sample.create()
    near = TablePointer(name="far.a.guest", location=inside(sample, "guests"))
    lost = TablePointer(
        name="far.a.lost",
        metadata_location="nonsense://nowhere/x",
        location=inside(sample, "guests"),
    )
    away = TablePointer(name="far.a.away", location="s3://bucket/away")
    for pointer, status in (
        (near, Ended.REFUSED),
        (lost, Ended.REFUSED),
        (away, Ended.NOTHING_TO_DO),
    ):
        table_access = CatalogTableAccess(
            sample.catalog, sample.name, elsewhere=lambda p=pointer: [p]
        )
        from penstock.maintenance.engines import embedded

        [action] = parse([ORPHANS])
        done = embedded.execute(table_access, sample.attempt(), action)
        assert (done.status, pointer.name in done.message) == (status, status is Ended.REFUSED)


def test_a_table_that_was_dropped_and_created_anew_is_tidied(sample: SampleTable) -> None:
    """Metadata of its predecessor is in its own folder: that is an orphan like others."""
    sample.create(files=1)
    predecessor = Path(sample.table.metadata_location.removeprefix("file://"))
    sample.catalog.drop_table(sample.name)
    sample.create(files=8)
    age_all(folder_of(sample))
    done = sample.run(ORPHANS)
    assert (done.status, predecessor.exists()) == (Ended.COMPLETED, False), done.message
    assert len(sample.ids()) == 80


def test_a_table_that_took_the_name_of_a_renamed_one_does_not_delete_its_files(
    sample: SampleTable,
    access: str,
) -> None:
    """Both have the same location: neither orphans nor what looks like a killed attempt's files may
    go.
    """
    sample.create()
    sample.run(COMPACT)
    sample.catalog.rename_table(sample.name, ("shop", "renamed"))
    renamed = SampleTable(sample.catalog, ("shop", "renamed"))
    sample.create()
    age_all(folder_of(sample))
    table_access = table_access_of(sample, access)
    table_access.exact = True
    assert remove_leftovers(table_access, sample.attempt(now=lambda: LATER)) == 0
    assert orphans(sample, access).status is Ended.REFUSED
    assert (len(renamed.ids()), len(sample.ids())) == (60, 60)


def test_two_tables_that_write_to_one_data_path_do_not_take_each_others_files(
    sample: SampleTable,
    tmp_path: Path,
) -> None:
    one_path = {"write.data.path": f"file://{tmp_path}/pool"}
    sample.create(**one_path)
    other = beside(sample, "a", "b", "other", files=6, **one_path)
    other.run(COMPACT)
    table_access = sample.table_access
    table_access.exact = True
    assert remove_leftovers(table_access, sample.attempt(now=lambda: LATER)) == 0
    assert len(other.ids()) == 60


def test_a_remote_engine_is_not_asked_where_the_embedded_one_refuses(
    sample: SampleTable,
    tmp_path: Path,
) -> None:
    sample.create()
    [action] = parse([ORPHANS])
    check_elsewhere(sample.table_access, sample.table, action)
    with another_catalog(tmp_path, "unknown", "other.db") as unknown:
        beside(SampleTable(unknown), "a", "inner", location=inside(sample, "inner"))
        with pytest.raises(Refused, match="inner/metadata"):
            check_elsewhere(sample.table_access, sample.table, action)
    beside(sample, "deep", "er", "nested", location=inside(sample, "nested"))
    with pytest.raises(Refused, match=r"deep\.er\.nested"):
        check_elsewhere(sample.table_access, sample.table, action)


def test_all_namespaces_and_tables_are_listed_once(sample: SampleTable) -> None:
    for name in (("a",), ("a", "b"), ("a", "b", "c"), ("a_", "b"), ("z",)):
        sample.catalog.create_namespace_if_not_exists(name)
        sample.catalog.create_table((*name, "t"), SCHEMA)
    assert sorted(all_namespaces(sample.catalog)) == [
        ("a",),
        ("a", "b"),
        ("a", "b", "c"),
        ("a_",),
        ("a_", "b"),
        ("z",),
    ]
    expected = [("a", "b", "c", "t"), ("a", "b", "t"), ("a", "t"), ("a_", "b", "t"), ("z", "t")]
    assert sorted(all_tables(sample.catalog)) == expected
