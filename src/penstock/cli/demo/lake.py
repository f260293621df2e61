"""Act four of the demo: a table that many small writes have worn out, and what maintenance makes of
it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from penstock.cli.output import out
from penstock.cli.tabular import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyiceberg.table import Table as IcebergTable

    from penstock.client import Client

NAME = "lake.shop.events"
WRITES = 40
ROWS_A_WRITE = 500
ACTIONS = ({"name": "rewrite_data_files", "force": True}, "rewrite_manifests")


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    sizes: tuple[int, ...]
    """Bytes of each data file."""
    manifests: int
    rows: int
    total: int

    @property
    def files(self) -> int:
        return len(self.sizes)

    @property
    def kilobytes(self) -> int:
        return round(sum(self.sizes) / 1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    before: Look
    after: Look

    @property
    def good(self) -> bool:
        """Fewer files, and the same rows with the same sum."""
        same = (self.before.rows, self.before.total) == (self.after.rows, self.after.total)
        return same and self.after.files < self.before.files


def keep(ps: Client, token: str, say: Callable[[str], None], *, quiet: bool) -> Kept:
    table = worn(ps.url, token)
    before = _look(table)
    say(f"{WRITES} small writes left {before.files} files in {NAME}")
    ps.tables[NAME].maintain(ACTIONS).wait(progress=not quiet)
    return Kept(before=before, after=_look(table.refresh()))


def worn(url: str, token: str) -> IcebergTable:
    """A table as a stream of small appends leaves it, written by way of our own REST catalog."""
    import pyarrow as pa
    from pyiceberg.catalog.rest import RestCatalog

    catalog = RestCatalog("lake", uri=f"{url}/api/iceberg/lake", token=token)
    catalog.create_namespace_if_not_exists("shop")
    schema = pa.schema([("id", pa.int64()), ("kind", pa.string()), ("cents", pa.int64())])
    table: IcebergTable = catalog.create_table_if_not_exists("shop.events", schema)
    for write in range(WRITES):
        ids = range(write * ROWS_A_WRITE, (write + 1) * ROWS_A_WRITE)
        kinds = [("view", "cart", "sale")[i % 3] for i in ids]
        table.append(
            pa.table(
                {"id": list(ids), "kind": kinds, "cents": [i * 7919 % 100_000 for i in ids]}, schema
            )
        )
    return table


def _look(table: IcebergTable) -> Look:
    import pyarrow.compute as pc

    rows = table.scan(selected_fields=("cents",)).to_arrow()
    return Look(
        sizes=tuple(table.inspect.files()["file_size_in_bytes"].to_pylist()),
        manifests=table.inspect.manifests().num_rows,
        rows=rows.num_rows,
        total=pc.sum(rows["cents"]).as_py() or 0,
    )


def show(result: Kept) -> None:
    drawn = table("", "before", "after", right=("before", "after"), title=f"The table {NAME}")
    for name, title in (
        ("files", "files"),
        ("manifests", "manifests"),
        ("kilobytes", "kB"),
        ("rows", "rows"),
    ):
        drawn.add_row(
            title, *(f"{getattr(look, name):,}" for look in (result.before, result.after))
        )
    out.print(drawn)
    mark = "[green]✓[/green] The same rows" if result.good else "[red]✗[/red] Not as it should be"
    out.print(
        f"\n{mark} in {result.after.files:,} of {result.before.files:,} files, locked and fenced "
        "meanwhile."
    )


def document(result: Kept) -> dict[str, object]:
    looks = {"before": result.before, "after": result.after}
    counted = {
        name: asdict(look) | {"files": look.files, "kilobytes": look.kilobytes}
        for name, look in looks.items()
    }
    return counted | {"ok": result.good}
