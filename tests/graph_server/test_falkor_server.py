"""The FalkorDB server that a graph server starts for itself, where its disk is the problem."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import redis
from pydantic import SecretStr

from penstock.graph_server.engine.falkor_server import FalkorServer
from penstock.graph_server.isolation.isolation import Isolation
from penstock.graph_server.settings import InstanceSettings
from penstock.graphdb.contract import GraphSchema, NodeTable, Property
from penstock.graphdb.errors import GraphFailed
from penstock.graphdb.falkordb.engine import open_engine
from penstock.graphdb.registry import Opening
from tests.servers.falkor import falkordb


async def test_a_graph_that_cannot_be_saved_says_where_and_why_and_an_end_is_noticed() -> None:
    with tempfile.TemporaryDirectory(prefix="pg-") as name:
        folder = Path(name)
        settings = InstanceSettings(id=7, token=SecretStr("x"), backend="falkordb", dir=folder)
        ended = asyncio.Event()
        server = FalkorServer(folder, settings, Isolation(level=0), on_end=lambda _: ended.set())
        await server.start()
        try:
            await server.save()
            (folder / "graph.rdb").unlink()
            (folder / "graph.rdb").mkdir()
            with pytest.raises(
                GraphFailed, match=f"save the graph in {folder}: .*Is a directory"
            ) as refusal:
                await server.save()
            assert "room" in str(refusal.value.hint)
            assert server.pid is not None
            os.kill(server.pid, signal.SIGKILL)
            async with asyncio.timeout(30):
                await ended.wait()
            assert not server.is_alive
        finally:
            await server.close()


def test_indexes_stay_when_only_the_client_of_a_server_is_started_again(tmp_path: Path) -> None:
    """Building them anew takes as long as the graph is large."""
    table = NodeTable(label="P", key=Property(name="id", type="INT64"))
    schema = GraphSchema(nodes=(table,), edges=())
    pq.write_table(pa.table({"id": [1, 2, 3]}), tmp_path / "p.parquet")
    with falkordb(tmp_path) as url:
        opening = Opening(folder=tmp_path, memory_bytes=2**26, threads=1, url=url)
        first = open_engine(opening)
        first.create(schema)
        first.load(table, [tmp_path / "p.parquet"])
        before = _writes(url)
        again = open_engine(replace(opening, schema=schema))
        assert again.counts() == {"P": 3}
        assert _writes(url) == before


def _writes(url: str) -> int:
    with redis.Redis(unix_socket_path=url.removeprefix("unix://"), decode_responses=True) as client:
        return int(client.info("commandstats")["cmdstat_graph.QUERY"]["calls"])
