"""Latency from POST to a completed run: 10,000 rows against 9,500, on a control plane and a worker
as deployed."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import httpx2
from rich.console import Console

from bench.api.asking import Asker
from bench.figures import Figure, figure, median
from bench.reconcile import generator
from bench.reconcile.cases import CASES
from penstock.cli.home import Home
from penstock.cli.stack import Stack

if TYPE_CHECKING:
    from pathlib import Path

ROWS = 10_000
TIMES = 7
LOOK = 0.005
say = Console(stderr=True).print


async def figures(scratch: Path) -> dict[str, Figure]:
    (folder := scratch / "small").mkdir()
    files = generator.one_to_one(folder, ROWS)
    async with Stack(Home(scratch / "home"), port=0, workers=1, environment={}) as stack:
        token = stack.home.secret("operator_token")
        async with Asker(stack.url, token) as ask:
            uploads = [await _upload(stack.url, token, file) for file in files]
            sides = [{"upload": upload, "primary_key": "id"} for upload in uploads]
            sources = dict(zip(("left", "right"), sides, strict=True))
            recipe = {"name": "small", "sources": sources, "rules": [CASES["one_to_one"].rule]}
            await _run(ask, recipe)
            took = [await _run(ask, recipe) for _ in range(TIMES)]
    say(f"10,000 rows: {[round(seconds, 3) for seconds in took]} s")
    return {
        "run_of_10000_rows_median": figure(median(took), "s from POST to completed", "< 0.5"),
        "run_of_10000_rows_worst": figure(max(took), f"s, worst of {TIMES}"),
    }


async def _upload(url: str, token: str, file: Path) -> str:
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(
        base_url=url, headers=headers, timeout=60, trust_env=False
    ) as http:
        answer = await http.post(
            "/api/uploads", params={"name": file.name}, content=file.read_bytes()
        )
    answer.raise_for_status()
    return str(answer.json()["data"]["upload_id"])


async def _run(ask: Asker, recipe: dict[str, Any]) -> float:
    started = time.perf_counter()
    run = await ask("POST", "/api/runs", {"recipe": recipe})
    while (state := await ask("GET", f"/api/runs/{run['run_id']}"))["status"] != "completed":
        if state["status"] == "failed":
            raise SystemExit(f"The run failed: {state['error']}")
        await asyncio.sleep(LOOK)
    return time.perf_counter() - started
