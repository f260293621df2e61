"""A control plane whose answers are lost on the way back: whatever is written is written once."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import httpx2
import pytest

import penstock
from tests.api.running_api import running_api

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.api.control_plane import Edge


@contextmanager
def losing(url: str, *, answers: int) -> Iterator[tuple[str, list[str]]]:
    """A line to a server that hands every request over and loses the first answers to writes."""
    lost: list[str] = []

    class Line(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _hand_over(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {
                k: v for k, v in self.headers.items() if k.lower() not in ("host", "content-length")
            }
            with httpx2.Client(trust_env=False) as http:
                answer = http.request(
                    self.command, url + self.path, content=content, headers=headers
                )
            if self.command != "GET" and len(lost) < answers:
                lost.append(f"{self.command} {self.path} {answer.status_code}")
                self.close_connection = True
                self.connection.close()
                return
            self.send_response(answer.status_code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer.content)))
            self.end_headers()
            self.wfile.write(answer.content)

        do_GET = do_POST = do_PUT = do_DELETE = _hand_over  # noqa: N815 - the names that the server looks for

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Line)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", lost
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize("answers", [1, 3])
async def test_a_job_whose_answer_is_lost_is_made_once(
    database: str, edge: Edge, tmp_path: Path, answers: int
) -> None:
    async with running_api(database, edge, tmp_path) as api:
        with losing(str(api.oz.base_url), answers=answers) as (url, lost):
            async with penstock.AsyncClient(url, "oz") as ps:
                job = await ps.jobs.create("probe", {"steps": 1})
                job_ids = [row.id async for row in ps.jobs.list(kind="probe")]
                again = await ps.jobs.create("probe", {"steps": 1})
    assert job_ids == [job.id]
    assert again.id != job.id
    assert lost == ["POST /api/jobs 201"] + ["POST /api/jobs 201"] * (answers - 1)


async def test_after_the_last_try_it_says_that_nobody_answered(
    database: str, edge: Edge, tmp_path: Path
) -> None:
    async with running_api(database, edge, tmp_path) as api:
        with losing(str(api.oz.base_url), answers=4) as (url, lost):
            async with penstock.AsyncClient(url, "oz") as ps:
                with pytest.raises(penstock.errors.Unreachable):
                    await ps.jobs.create("probe", {"steps": 1})
                assert len([row async for row in ps.jobs.list(kind="probe")]) == 1
    assert len(lost) == 4
