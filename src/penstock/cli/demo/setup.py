"""What a home is furnished with for whoever wants to explore: the demo warehouse, a mapping and a
recipe of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.cli.demo import books, rings, warehouse

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.cli.home import Home
    from penstock.client import Client


@dataclass(frozen=True, slots=True, kw_only=True)
class Furniture:
    mapping_id: int
    recipe_id: str


def stands(home: Home) -> bool:
    """Whether this home was furnished before; what somebody threw out since stays out."""
    return _file(home).exists()


def put(ps: Client, home: Home) -> Furniture:
    """All of it, each piece only where it is missing."""
    warehouse.build(_file(home))
    return Furniture(
        mapping_id=rings.prepare(ps, _source(ps, _file(home))), recipe_id=books.prepare(ps)
    )


def _source(ps: Client, file: Path) -> int:
    source_id = next(
        (source.id for source in ps.sources.list() if source.name == warehouse.SOURCE), None
    )
    return source_id or ps.sources.create(warehouse.SOURCE, "duckdb", {"database": str(file)}).id


def _file(home: Home) -> Path:
    return home.folder / "warehouse" / "demo.duckdb"
