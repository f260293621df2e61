"""What every source driver must do, tried on a real server.

A driver's tests subclass `Conformance` (and `NetworkConformance` when it has a server and a
password) and give the fixture `subject`: how to fill that source, and how to look inside it. What
only some can do is in `capability_conformance`.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import sys
import traceback
from contextlib import aclosing, asynccontextmanager
from dataclasses import asdict
from decimal import Decimal
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pytest

from penstock.kit.errors import PenstockError
from penstock.sources import threaded_stream
from penstock.sources.contract import (
    Chunk,
    FileSource,
    Limits,
    Plan,
    Source,
    SpoolSource,
    UnloadSource,
)
from penstock.sources.errors import SourceQueryError, SourceRefused, SourceUnavailable
from penstock.sources.registry import open_source

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from tests.sources.proxy import Proxy

DEADLINE = 30
CAPABILITIES: tuple[type, ...] = (FileSource, SpoolSource, UnloadSource)
UTC = dt.UTC

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("small", pa.int32()),
        ("ratio", pa.float64()),
        ("amount", pa.decimal128(12, 2)),
        ("exact", pa.decimal128(30, 10)),
        ("name", pa.string()),
        ("flag", pa.bool_()),
        ("born", pa.date32()),
        ("local", pa.timestamp("us")),
        ("moment", pa.timestamp("us", tz="UTC")),
        ("blob", pa.binary()),
    ]
)
ROWS = [
    {
        "id": 2**63 - 1,
        "small": -(2**31),
        "ratio": 0.1,
        "amount": Decimal("-9999999999.99"),
        "exact": Decimal("12345678901234567890.0123456789"),
        "name": "Zoë \U0001f980 'quoted' \"twice\"\n\\tab\t, ; |",
        "flag": True,
        "born": dt.date(1900, 2, 28),
        "local": dt.datetime(2024, 2, 29, 23, 59, 59, 999999),  # noqa: DTZ001 - a local time has no zone
        "moment": dt.datetime(2024, 3, 31, 1, 30, 0, 1, tzinfo=UTC),
        "blob": bytes(range(256)),
    },
    dict.fromkeys(SCHEMA.names) | {"id": 1},
    {
        "id": 0,
        "small": 0,
        "ratio": -1.7976931348623157e308,
        "amount": Decimal("0.01"),
        "exact": Decimal("-0.0000000001"),
        "name": "",
        "flag": False,
        "born": dt.date(9999, 12, 30),
        "local": dt.datetime(1970, 1, 1),  # noqa: DTZ001
        "moment": dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
        "blob": b"",
    },
]


class Subject(Protocol):
    """A source under test."""

    kind: str
    config: dict[str, object]
    secrets: dict[str, str]

    endless: str
    """A query that would run for many minutes before its first row."""

    async def load(self, name: str, table: pa.Table) -> None:
        """Make a table with exactly these columns and rows."""
        ...

    async def many(self, rows: int) -> str:
        """A query of so many rows of about 200 bytes."""
        ...

    async def running(self) -> int:
        """How many queries of ours the source is working on."""
        ...

    def quote(self, name: str) -> str: ...


class NetworkSubject(Subject, Protocol):
    proxy: Proxy

    async def through_proxy(self) -> dict[str, object]:
        """The configuration that goes through `proxy`."""
        ...


def opened(subject: Subject, **changes: object) -> Source:
    return open_source(subject.kind, {**subject.config, **changes}, subject.secrets)


@asynccontextmanager
async def loaded(subject: Subject, **tables: pa.Table) -> AsyncIterator[Source]:
    """The source with these tables in it."""
    for name, table in tables.items():
        await subject.load(name, table)
    async with opened(subject) as source:
        yield source


def chunk(sql: str) -> Chunk:
    return Chunk(number=0, sql=sql)


async def collect(source: Source, sql: str) -> pa.Table:
    batches = [batch async for batch in source.stream(chunk(sql))]
    return pa.Table.from_batches(batches, await source.schema(sql))


async def until(condition: Callable[[], Awaitable[bool]], within: float = DEADLINE) -> None:
    async with asyncio.timeout(within):
        while not await condition():  # noqa: ASYNC110 - the other side has no event to wait for
            await asyncio.sleep(0.02)


async def started(subject: Subject) -> None:
    async def runs() -> bool:
        return await subject.running() > 0

    await until(runs)


async def freed(subject: Subject) -> None:
    async def rests() -> bool:
        return await subject.running() == 0

    await until(rests)


def sample(rows: list[dict[str, object]] | None = None) -> pa.Table:
    return pa.Table.from_pylist(ROWS if rows is None else rows, SCHEMA)


def told(error: BaseException) -> str:
    """Everything that the error shows to anybody."""
    parts = ["".join(traceback.format_exception(error)), repr(error)]
    if isinstance(error, PenstockError):
        parts += [error.message, error.hint or "", repr(error.details)]
    return "\n".join(parts)


class Conformance:
    capabilities: frozenset[type] = frozenset()
    """Those of `contract` that the driver has; their tests are in `capability_conformance`."""

    @pytest.fixture
    async def subject(self) -> Subject:
        raise NotImplementedError

    async def test_its_capabilities_are_those_that_are_tested(self, subject: Subject) -> None:
        async with opened(subject) as source:
            present = {kind for kind in CAPABILITIES if isinstance(source, kind)}
        assert present == self.capabilities

    async def test_it_says_what_answered(self, subject: Subject) -> None:
        async with opened(subject) as source:
            assert any(letter.isdigit() for letter in await source.test())

    async def test_types_values_and_nulls_are_exact(self, subject: Subject) -> None:
        async with loaded(subject, sample=sample()) as source:
            table = await collect(source, "SELECT * FROM sample")
        assert table.schema.remove_metadata() == SCHEMA
        assert table.sort_by("id") == sample().sort_by("id")

    async def test_every_batch_has_the_schema_that_was_promised(self, subject: Subject) -> None:
        sql = "SELECT * FROM sample"
        async with loaded(subject, sample=sample()) as source:
            plan = await source.plan(sql, Limits())
            schemas = [batch.schema async for batch in source.stream(plan.chunks[0])]
            assert schemas == [plan.schema] * len(schemas)
            assert plan.schema == await source.schema(sql)

    async def test_a_column_of_nulls_keeps_its_type(self, subject: Subject) -> None:
        nothing = sample([dict.fromkeys(SCHEMA.names) | {"id": i} for i in range(3)])
        async with loaded(subject, nulls=nothing) as source:
            assert (await collect(source, "SELECT * FROM nulls")).sort_by("id") == nothing

    async def test_zero_rows_keep_their_schema(self, subject: Subject) -> None:
        sql = "SELECT * FROM empty"
        async with loaded(subject, empty=sample([])) as source:
            table = await collect(source, sql)
            assert (await source.plan(sql, Limits())).schema.remove_metadata() == SCHEMA
        assert table.num_rows == 0
        assert table.schema.remove_metadata() == SCHEMA

    async def test_columns_come_in_the_order_of_the_query(self, subject: Subject) -> None:
        async with loaded(subject, sample=sample()) as source:
            assert (await collect(source, "SELECT name, id, flag FROM sample")).column_names == [
                "name",
                "id",
                "flag",
            ]

    @pytest.mark.parametrize("end", [";", " ; -- the end", "\n-- the end\n;\n", " /* the end */"])
    async def test_a_query_may_end_as_people_end_them(self, subject: Subject, end: str) -> None:
        async with loaded(subject, sample=sample()) as source:
            assert await collect_batches(source, f"SELECT id FROM sample{end}") == len(ROWS)

    async def test_duplicate_column_names_are_refused(self, subject: Subject) -> None:
        sql = "SELECT id, name, small AS id FROM sample"
        async with loaded(subject, sample=sample()) as source:
            with pytest.raises(SourceQueryError, match="id"):
                await source.schema(sql)
            with pytest.raises(SourceQueryError, match="id"):
                await collect_batches(source, sql)

    async def test_names_in_any_script_and_with_any_sign_survive(self, subject: Subject) -> None:
        table = pa.table(
            {"größe": [1], "名前": ["x"], "with space": [2], "per%cent": [3], "select": [4]}
        )
        async with loaded(subject, Überweisung=table) as source:
            assert await collect(source, f"SELECT * FROM {subject.quote('Überweisung')}") == table

    async def test_a_thousand_columns_come_whole(self, subject: Subject) -> None:
        table = pa.table({f"c{i}": pa.array([i, None, -i], pa.int32()) for i in range(1000)})
        async with loaded(subject, wide=table) as source:
            assert (await collect(source, "SELECT * FROM wide")).sort_by("c1") == table.sort_by(
                "c1"
            )

    async def test_a_value_of_five_megabytes_comes_whole(self, subject: Subject) -> None:
        table = pa.table(
            {
                "id": pa.array([1, 2, 3], pa.int64()),
                "name": ["a" * 5_000_000, "é" * 2_500_000, None],
            }
        )
        async with loaded(subject, large=table) as source:
            assert (await collect(source, "SELECT * FROM large")).sort_by("id") == table

    async def test_two_streams_at_once_do_not_mix(self, subject: Subject) -> None:
        low, high = (
            pa.table({"id": pa.array(numbers, pa.int64())})
            for numbers in (range(5000), range(5000, 9000))
        )
        async with loaded(subject, low=low, high=high) as source:
            left, right = await asyncio.gather(
                collect(source, "SELECT id FROM low"), collect(source, "SELECT id FROM high")
            )
        assert sorted(left["id"].to_pylist()) == low["id"].to_pylist()
        assert sorted(right["id"].to_pylist()) == high["id"].to_pylist()

    async def test_a_million_rows_need_no_more_memory_than_a_few(self, subject: Subject) -> None:
        job = {"kind": subject.kind, "config": subject.config, "secrets": subject.secrets}
        few = await in_child({**job, "sql": await subject.many(100_000)})
        all_of_them = await in_child({**job, "sql": await subject.many(1_000_000)})
        assert (few["rows"], all_of_them["rows"]) == (100_000, 1_000_000)
        assert all_of_them["mb"] > 150
        assert all_of_them["peak"] < 450
        assert all_of_them["peak"] - few["peak"] < 80

    @pytest.mark.parametrize(
        "sql",
        [
            "SELEC 1",
            "SELECT 1 FROM no_such_table",
            "SELECT no_such_column FROM sample",
            "SELECT 1; SELECT 2",
        ],
    )
    async def test_wrong_sql_is_the_users_error(self, subject: Subject, sql: str) -> None:
        async with loaded(subject, sample=sample()) as source:
            for attempt in (
                source.schema(sql),
                source.plan(sql, Limits()),
                collect_batches(source, sql),
            ):
                with pytest.raises(SourceQueryError):
                    await attempt

    @pytest.mark.parametrize(
        "sql", ["DELETE FROM sample", "DROP TABLE sample", "CREATE TABLE stolen (id int)"]
    )
    async def test_nothing_can_be_written(self, subject: Subject, sql: str) -> None:
        async with loaded(subject, sample=sample()) as source:
            with pytest.raises(PenstockError):
                await collect_batches(source, sql)
            assert await collect_batches(source, "SELECT id FROM sample") == len(ROWS)

    async def test_cancelling_stops_the_query_at_the_source(self, subject: Subject) -> None:
        async with opened(subject) as source:
            task = asyncio.create_task(collect_batches(source, subject.endless))
            await started(subject)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(task, threaded_stream.GRACE)
            await freed(subject)

    async def test_leaving_early_frees_the_source(self, subject: Subject) -> None:
        sql = await subject.many(200_000)
        async with opened(subject) as source:
            async with aclosing(source.stream(chunk(sql))) as batches:
                first = await anext(batches)
            assert 0 < first.num_rows < 200_000
            await freed(subject)

    async def test_the_schema_costs_no_run(self, subject: Subject) -> None:
        async with opened(subject) as source:
            assert await asyncio.wait_for(source.schema(subject.endless), 5)

    async def test_chunks_are_disjoint_and_make_the_whole(self, subject: Subject) -> None:
        numbers = pa.table(
            {
                "id": pa.array(range(20_000), pa.int64()),
                "name": [f"{i:0100d}" for i in range(20_000)],
            }
        )
        limits = Limits(chunk_bytes=200_000, max_chunks=7)
        async with loaded(subject, numbers=numbers) as source:
            plan = await source.plan("SELECT id, name FROM numbers WHERE id <> 7", limits)
            assert 1 <= len(plan.chunks) <= 7
            assert [part.number for part in plan.chunks] == list(range(len(plan.chunks)))
            table = await collect_chunks(source, plan)
        assert sorted(table["id"].to_pylist()) == [i for i in range(20_000) if i != 7]


class NetworkConformance(Conformance):
    @pytest.fixture
    async def subject(self) -> NetworkSubject:
        raise NotImplementedError

    async def test_a_wrong_password_is_refused_and_never_shown(
        self, subject: NetworkSubject
    ) -> None:
        secrets = {**subject.secrets, "password": "n0t-th3-passw0rd"}
        with pytest.raises(SourceRefused) as refused:
            async with open_source(subject.kind, subject.config, secrets) as source:
                await source.test()
        assert secrets["password"] not in told(refused.value)

    async def test_a_source_that_is_down_is_unavailable_and_its_password_never_shown(
        self, subject: NetworkSubject, unused_tcp_port: int
    ) -> None:
        with pytest.raises(SourceUnavailable) as down:
            async with opened(subject, host="127.0.0.1", port=unused_tcp_port) as source:
                await source.test()
        assert subject.secrets["password"] not in told(down.value)

    @pytest.mark.parametrize("end", ["cut", "reset"])
    async def test_a_connection_lost_on_the_way_is_unavailable(
        self, subject: NetworkSubject, end: str
    ) -> None:
        sql = await subject.many(1_000_000)
        async with opened(subject, **await subject.through_proxy()) as source:
            subject.proxy.after(2_000_000, getattr(subject.proxy, end))
            with pytest.raises(SourceUnavailable):
                await collect_batches(source, sql)
        await freed(subject)

    async def test_a_source_that_falls_silent_is_unavailable(
        self, subject: NetworkSubject, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(threaded_stream, "GRACE", 0.5)
        sql = await subject.many(1_000_000)
        async with opened(subject, **await subject.through_proxy(), silence_seconds=1) as source:
            subject.proxy.after(2_000_000, subject.proxy.freeze)
            with pytest.raises(SourceUnavailable, match="silent"):
                await collect_batches(source, sql)
        subject.proxy.thaw()
        subject.proxy.cut()
        await freed(subject)

    async def test_a_frozen_source_does_not_hold_back_who_leaves(
        self, subject: NetworkSubject, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(threaded_stream, "GRACE", 0.5)
        sql = await subject.many(1_000_000)
        async with opened(subject, **await subject.through_proxy()) as source:
            subject.proxy.after(2_000_000, subject.proxy.freeze)
            task = asyncio.create_task(collect_batches(source, sql))
            await subject.proxy.struck()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(task, 5)
        subject.proxy.thaw()
        subject.proxy.cut()
        await freed(subject)


def travelled(part: Chunk) -> Chunk:
    """The chunk after its way through a job's payload."""
    return Chunk(**json.loads(json.dumps(asdict(part))))


async def collect_chunks(source: Source, plan: Plan) -> pa.Table:
    try:
        batches = [batch for part in plan.chunks async for batch in source.stream(travelled(part))]
    finally:
        if plan.hold is not None:
            await plan.hold.close()
    return pa.Table.from_batches(batches, plan.schema)


async def collect_batches(source: Source, sql: str) -> int:
    async with aclosing(source.stream(chunk(sql))) as batches:
        return sum([batch.num_rows async for batch in batches])


async def in_child(job: dict[str, object]) -> dict[str, float]:
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.sources.memory",
        json.dumps(job),
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await child.communicate()
    assert child.returncode == 0
    report: dict[str, float] = json.loads(out)
    return report
