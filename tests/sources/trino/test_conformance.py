"""What every source driver must do, on both servers."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING

import pytest

from tests.sources.conformance import Conformance

if TYPE_CHECKING:
    from tests.sources.trino.subjects import TrinoSubject


class TestTrino(Conformance):
    @pytest.fixture
    async def subject(self, trino_server: TrinoSubject) -> TrinoSubject:
        return trino_server

    async def test_a_million_rows_need_no_more_memory_than_a_few(self, subject: TrinoSubject) -> None:
        few = await appetite(subject, 200_000)
        many = await appetite(subject, 1_000_000)
        assert (few[0], many[0]) == (200_000, 1_000_000)
        assert many[1] < 400
        assert many[1] - few[1] < 80


async def appetite(subject: TrinoSubject, rows: int) -> tuple[int, int]:
    job = json.dumps({"config": subject.config, "secrets": subject.secrets, "sql": await subject.many(rows)})
    command = [sys.executable, "-m", "tests.sources.trino.appetite", job]
    child = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    out, _ = await child.communicate()
    read, peak = map(int, out.split())
    return read, peak
