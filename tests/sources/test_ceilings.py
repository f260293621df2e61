"""What a source may ask of the machine that reads it: more is refused, and cut down when the source
is opened."""

from __future__ import annotations

import dataclasses
from importlib import import_module
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import duckdb
import pytest

from penstock.kit.db import Db
from penstock.kit.errors import InvalidInput
from penstock.kit.vault import Vault, new_key
from penstock.sources.ceilings import BOUNDED, Ceilings, Size
from penstock.sources.contract import Chunk
from penstock.sources.errors import SourceError
from penstock.sources.registry import DRIVERS, open_source
from penstock.sources.repository import DataSources
from penstock.wiring.settings import Settings
from tests.sources.conformance import collect

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

CEILINGS = Ceilings.of(Settings())
OTHERWISE_BOUNDED = {
    "bigquery.maximum_bytes_billed": "their own money",
    "elasticsearch.page_rows": "at most 10,000, and page_bytes bounds what they hold",
    "mysql.port": "an address",
    "postgres.port": "an address",
}
"""Numbers that cost nothing here."""
NEEDED: dict[str, dict[str, Any]] = {
    "bigquery": {"project": "shop-prod"},
    "duckdb": {"database": "shop.duckdb"},
    "elasticsearch": {"url": "https://search.example:9200"},
    "files": {"url": "file:///data"},
    "mysql": {"database": "shop", "user": "ann"},
    "postgres": {"database": "shop", "user": "ann"},
    "trino": {"url": "https://trino.example", "user": "ann"},
}
EVERY = [(kind, name) for kind, settings in BOUNDED.items() for name in settings]


def numbers(kind: type, prefix: str = "") -> Iterator[tuple[str, object]]:
    """The numeric and size settings of a driver, with their defaults."""
    hints = get_type_hints(kind, include_extras=False)
    sizes = get_type_hints(kind, include_extras=True)
    for field in dataclasses.fields(kind):
        hint = hints[field.name]
        if dataclasses.is_dataclass(hint) and isinstance(hint, type):
            yield from numbers(hint, f"{prefix}{field.name}.")
        elif {int, float} & {hint, *get_args(hint)} or sizes[field.name] == Size:
            yield f"{prefix}{field.name}", field.default


def configuration(kind: str) -> type:
    module = DRIVERS[kind].module
    for name in (f"{module}.config", f"{module.rpartition('.')[0]}.config", module):
        try:
            config: type = import_module(name).Config
        except (ModuleNotFoundError, AttributeError):
            continue
        return config
    raise AssertionError(f"{kind} has no configuration")


@pytest.mark.parametrize("kind", sorted(DRIVERS))
def test_every_number_of_every_driver_has_a_ceiling(kind: str) -> None:
    defaults = {
        name: default
        for name, default in numbers(configuration(kind))
        if f"{kind}.{name}" not in OTHERWISE_BOUNDED
    }
    assert defaults == {name: bounded.default for name, bounded in BOUNDED[kind].items()}


def asking(kind: str, name: str, value: object) -> dict[str, Any]:
    outer, _, inner = name.partition(".")
    return {**NEEDED[kind], outer: {inner: value} if inner else value}


def most(kind: str, name: str) -> Any:
    ceiling = CEILINGS.clamp(
        kind, asking(kind, name, "999TB" if BOUNDED[kind][name].unit is None else 10**15)
    )
    outer, _, inner = name.partition(".")
    return ceiling[outer][inner] if inner else ceiling[outer]


@pytest.mark.parametrize(("kind", "name"), EVERY)
def test_a_source_may_ask_for_the_ceiling_and_not_for_more(kind: str, name: str) -> None:
    highest = most(kind, name)
    CEILINGS.check(kind, asking(kind, name, highest))
    more = f"{int(highest[:-2]) + 1}MB" if isinstance(highest, str) else highest + 1
    with pytest.raises(InvalidInput, match=name) as caught:
        CEILINGS.check(kind, asking(kind, name, more))
    assert f"source_{BOUNDED[kind][name].ceiling}" in (caught.value.hint or "")
    assert caught.value.details["field"] == f"config.{name}"


@pytest.mark.parametrize(
    ("value", "allowed"),
    [
        ("1GB", True),
        ("1000MB", True),
        ("1024MB", True),
        ("1025MB", False),
        ("1GiB", False),
        ("0.001TB", True),
        ("1.1 GB", False),
        ("999TB", False),
        ("999999999TiB", False),
    ],
)
def test_sizes_are_compared_in_bytes(value: str, allowed: bool) -> None:
    config = asking("duckdb", "memory_limit", value)
    clamped = CEILINGS.clamp("duckdb", config)
    assert clamped["memory_limit"] == (value if allowed else "1024MB")


@pytest.mark.parametrize(
    "value",
    ["much", "9" * 5000 + "TB", "1GB; SET threads = 99", "1GB\n", "-1GB", "٩GB", True, None],
)
def test_what_is_no_size_is_refused_by_the_driver(value: object) -> None:
    config = CEILINGS.clamp("duckdb", {"database": "shop.duckdb", "memory_limit": value})
    with pytest.raises(InvalidInput, match="memory_limit"):
        open_source("duckdb", config, {})


def test_a_default_past_the_ceiling_is_cut_down_too() -> None:
    poor = dataclasses.replace(CEILINGS, memory_mb=64, threads=1, spill_mb=5, buffer_mb=1)
    clamped = poor.clamp("duckdb", {"database": "shop.duckdb"})
    assert clamped == {
        "database": "shop.duckdb",
        "memory_limit": "64MB",
        "spill_limit": "5MB",
        "threads": 1,
    }
    files = poor.clamp("files", {"url": "file:///data", "csv": {"header": False}})
    assert files["csv"] == {"header": False, "block_bytes": 1_000_000}


@pytest.fixture
async def db(database: str) -> AsyncIterator[Db]:
    async with Db(database, size=2) as opened:
        yield opened


async def test_a_source_of_earlier_days_obeys_the_ceilings_of_today(db: Db, tmp_path: Path) -> None:
    duckdb.connect(str(tmp_path / "shop.duckdb")).close()
    config = {"database": str(tmp_path / "shop.duckdb"), "memory_limit": "999TB", "threads": 256}
    vault = Vault([new_key()])
    before = await DataSources(db, vault).add(
        name="shop", kind="duckdb", owner="ann", config=config, secrets={}
    )
    today = DataSources(db, vault, ceilings=CEILINGS)
    opening = await today.opening(before.data_source_id)
    assert (opening.config["memory_limit"], opening.config["threads"]) == ("1024MB", 4)
    sql = "SELECT current_setting('memory_limit') AS m, current_setting('threads') AS t"
    async with opening.opened() as source:
        rows = await collect(source, sql)
    assert rows.to_pylist() == [{"m": "976.5 MiB", "t": 4}]
    # What is not touched may be kept; what is written anew may not ask for so much.
    await today.update(before.data_source_id, name="market")
    for written in (config, config | {"threads": 1}):
        with pytest.raises(InvalidInput, match="memory_limit"):
            await today.update(before.data_source_id, config=written)
        with pytest.raises(InvalidInput, match="memory_limit"):
            await today.add(name="other", kind="duckdb", owner="ann", config=written, secrets={})


async def test_a_query_that_fills_the_disk_is_stopped_at_its_share(tmp_path: Path) -> None:
    duckdb.connect(str(tmp_path / "shop.duckdb")).close()
    config = {
        "database": str(tmp_path / "shop.duckdb"),
        "memory_limit": "16MB",
        "spill_limit": "1MB",
        "threads": 1,
    }
    sql = (
        "SELECT hash(i) AS h, repeat('x', 40) || hash(i + 1) AS s"
        " FROM range(600000) t(i) ORDER BY s"
    )
    async with open_source("duckdb", config, {}) as source:
        with pytest.raises(SourceError, match="temporary disk") as caught:
            async for _ in source.stream(Chunk(number=0, sql=sql)):
                pass
    assert "source_spill_mb" in (caught.value.hint or "")
