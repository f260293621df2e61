"""What every source driver must do, on both servers."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING

import pytest

from penstock.sources.contract import SpoolSource, UnloadSource
from tests.sources.capability_conformance import SpoolConformance, UnloadConformance

if TYPE_CHECKING:
    from tests.sources.conformance import Subject
    from tests.sources.trino.subjects import TrinoSubject


class TestTrino(UnloadConformance, SpoolConformance):
    capabilities = frozenset({UnloadSource, SpoolSource})

    @pytest.fixture
    async def subject(self, trino_server: TrinoSubject) -> TrinoSubject:
        return trino_server

    async def test_a_million_rows_need_no_more_memory_than_a_few(self, subject: Subject) -> None:
        few, rows = 200_000, 500_000
        job = {
            "config": subject.config,
            "secrets": subject.secrets,
            "sql": await subject.many(rows),
            "early": few,
        }
        command = [sys.executable, "-m", "tests.sources.trino.appetite", json.dumps(job)]
        child = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        out, _ = await child.communicate()
        read, early, peak = map(int, out.split())
        assert read == rows
        assert peak < 350
        assert peak - early < 70
