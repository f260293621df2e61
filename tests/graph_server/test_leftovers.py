"""What a query that ran out of memory left in the engine process is measured before the next one
begins."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from pydantic import SecretStr

from penstock.graph_server.engine.engine import Engine
from penstock.graph_server.engine.engine_run import Life
from penstock.graph_server.engine.engine_work import Question
from penstock.graph_server.isolation.isolation import Isolation
from penstock.graph_server.settings import InstanceSettings
from penstock.graphdb.errors import QueryOutOfMemory
from tests.graph_server.people import TOKEN, load

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MIB = 1024**2
HOG = "RETURN size(range(1, 1000000000))"
SMALL = "MATCH (p:Person) RETURN count(p)"


def question(text: str) -> Callable[[float], Question]:
    return lambda left: Question(text=text, parameters={}, timeout=left, max_rows=1000, guard=True)


async def test_no_query_begins_before_the_leftovers_of_one_that_ran_out_of_memory_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measuring, may_measure = asyncio.Event(), asyncio.Event()
    ask = Life.ask

    async def ask_late(life: Life, method: str, **arguments: Any) -> Any:
        if method == "grown":
            measuring.set()
            await may_measure.wait()
        return await ask(life, method, **arguments)

    monkeypatch.setattr(Life, "ask", ask_late)
    settings = InstanceSettings(
        id=1,
        token=SecretStr(TOKEN),
        dir=tmp_path,
        memory_bytes=512 * MIB,
        query_memory_bytes=160 * MIB,
        isolation="off",
    )
    engine = Engine(settings, Isolation(level=0), lost=pytest.fail)
    try:
        await load(engine, tmp_path)
        with pytest.raises(QueryOutOfMemory):
            await engine.query(question(HOG), timeout=60)
        await measuring.wait()
        small = asyncio.create_task(engine.query(question(SMALL), timeout=60))
        for _ in range(20):
            await asyncio.sleep(0)
        assert engine.active == 1
        life = engine.supervisor.current
        assert life is not None
        assert not life.running
        may_measure.set()
        answer = await small
        assert orjson.loads(await answer.whole())["rows"] == [[5]]
    finally:
        may_measure.set()
        await engine.close()
