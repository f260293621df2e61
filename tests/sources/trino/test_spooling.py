"""Spooled segments: fetched side by side, given in order, checked, and let go only when their rows
are stored."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from penstock.sources.errors import SourceError
from penstock.sources.receipts import Receipts
from penstock.sources.trino.spooling import segments, unpack
from tests.sources.conformance import chunk, collect
from tests.sources.trino.subjects import FakeSubject, RealSubject, opened

if TYPE_CHECKING:
    from tests.servers.trino import Trino
    from tests.servers.trino_fake import TrinoFake

SQL = "SELECT n, text FROM numbers"
ROWS = 20_000
LARGE = {
    "spooling_inlining_enabled": "false",
    "spooling_initial_segment_size": "1MB",
    "spooling_max_segment_size": "1MB",
}


@pytest.fixture
def subject(fake_trino: TrinoFake) -> FakeSubject:
    numbers = pa.table(
        {"n": pa.array(range(ROWS), pa.int64()), "text": [f"row {n}" for n in range(ROWS)]}
    )
    fake_trino.engine.load("numbers", numbers)
    return FakeSubject(fake_trino)


@pytest.mark.parametrize("encoding", ["json+zstd", "json+lz4", "json"])
async def test_every_encoding_gives_the_same_rows(
    fake_trino: TrinoFake, subject: FakeSubject, encoding: str
) -> None:
    async with opened(subject, encodings=[encoding]) as source:
        table = await collect(source, SQL)
    assert table["n"].to_pylist() == list(range(ROWS))
    assert len(fake_trino.segments) == ROWS // fake_trino.page_rows


async def test_small_segments_come_inside_the_answer(
    fake_trino: TrinoFake, subject: FakeSubject
) -> None:
    fake_trino.page_rows = 100
    async with opened(subject) as source:
        assert (await collect(source, SQL))["n"].to_pylist() == list(range(ROWS))
    assert fake_trino.segments == {}


async def test_segments_are_fetched_side_by_side_and_given_in_order(
    fake_trino: TrinoFake, subject: FakeSubject
) -> None:
    """The first ones arrive last."""
    waiting: list[asyncio.Event] = []
    most = 0

    async def hold() -> None:
        nonlocal most
        mine = asyncio.Event()
        waiting.append(mine)
        most = max(most, len(waiting))
        if len(waiting) == 4 or len(fake_trino.segments) == ROWS // fake_trino.page_rows:
            for event in waiting:
                event.set()
        await mine.wait()
        waiting.remove(mine)

    fake_trino.before_segment = hold
    async with opened(subject, parallel=4) as source:
        assert (await collect(source, SQL))["n"].to_pylist() == list(range(ROWS))
    assert most >= 4


async def test_a_segment_is_let_go_only_when_its_rows_are_stored(
    fake_trino: TrinoFake, subject: FakeSubject
) -> None:
    receipts = Receipts()
    async with opened(subject) as source:
        rows = 0
        async for batch in source.spooled_stream(chunk(SQL), receipts):
            rows += batch.num_rows
        assert fake_trino.acknowledged == []
        await receipts.stored(4999)
        assert len(fake_trino.acknowledged) == 2
        await receipts.stored(5000)
        assert len(fake_trino.acknowledged) == 2
        await receipts.stored(rows)
    assert len(fake_trino.acknowledged) == len(set(fake_trino.acknowledged)) == 10
    assert fake_trino.segments == {}


async def test_without_receipts_segments_are_left_to_expire(
    fake_trino: TrinoFake, subject: FakeSubject
) -> None:
    async with opened(subject) as source:
        await collect(source, SQL)
    assert fake_trino.acknowledged == []


async def test_a_segment_that_is_gone_is_an_error_and_not_a_gap(
    fake_trino: TrinoFake, subject: FakeSubject
) -> None:
    async def lose() -> None:
        fake_trino.segments.clear()

    fake_trino.before_segment = lose
    async with opened(subject) as source:
        with pytest.raises(SourceError, match="Segment not found"):
            await collect(source, SQL)


async def test_a_segment_of_another_size_is_an_error(
    fake_trino: TrinoFake, subject: FakeSubject
) -> None:
    async def shorten() -> None:
        for name, raw in fake_trino.segments.items():
            fake_trino.segments[name] = raw[:-1]

    fake_trino.before_segment = shorten
    async with opened(subject) as source:
        with pytest.raises(SourceError, match="bytes"):
            await collect(source, SQL)


async def test_a_page_that_trino_left_out_is_an_error(
    fake_trino: TrinoFake, subject: FakeSubject
) -> None:
    fake_trino.forget_page = 3
    async with opened(subject) as source:
        with pytest.raises(SourceError, match="Rows 4000 to 6000 are missing"):
            await collect(source, SQL)


def inline(**metadata: object) -> dict[str, object]:
    return {
        "type": "inline",
        "data": "W1sxXV0=",
        "metadata": {"rowOffset": 0, "rowsCount": 1, **metadata},
    }


def test_a_segment_is_compressed_only_when_it_says_how_large_it_was() -> None:
    [segment] = segments({"encoding": "json+zstd", "segments": [inline(segmentSize=5)]})
    assert unpack(segment, segment.data or b"") == b"[[1]]"


@pytest.mark.parametrize("size", [1, 4, 6, 5_000_000])
def test_a_wrong_uncompressed_size_is_an_error(size: int) -> None:
    raw = pa.Codec("zstd").compress(b"[[1]]", asbytes=True)
    [segment] = segments(
        {"encoding": "json+zstd", "segments": [inline(segmentSize=len(raw), uncompressedSize=size)]}
    )
    with pytest.raises(SourceError, match="zstd"):
        unpack(segment, raw)


def test_segments_are_put_in_the_order_of_their_rows() -> None:
    later, sooner = inline(segmentSize=5, rowOffset=7), inline(segmentSize=5)
    ordered = segments({"encoding": "json", "segments": [later, sooner]})
    assert [segment.offset for segment in ordered] == [0, 7]


def test_an_encoding_that_was_not_asked_for_is_refused() -> None:
    with pytest.raises(SourceError, match="arrow"):
        segments({"encoding": "arrow", "segments": []})


@pytest.mark.parametrize("encoding", ["json+zstd", "json+lz4", "json"])
async def test_a_real_spool_gives_what_the_coordinator_gives(
    real_trino: Trino, encoding: str
) -> None:
    subject = RealSubject(real_trino)
    sql = "SELECT orderkey, linenumber, comment, shipdate FROM tpch.tiny.lineitem ORDER BY 1, 2"
    receipts = Receipts()
    async with (
        opened(subject, encodings=[]) as direct,
        opened(subject, encodings=[encoding], session=LARGE) as source,
    ):
        batches = [batch async for batch in source.spooled_stream(chunk(sql), receipts)]
        assert pa.Table.from_batches(batches) == await collect(direct, sql)
        objects = real_trino.spool.objects()
        assert len(receipts) >= 2
        freed = len(receipts)
        await receipts.stored(60175)
        assert len(objects - real_trino.spool.objects()) == freed
