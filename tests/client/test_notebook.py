"""The client where a loop already runs: in a real notebook's kernel, and in a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from penstock.client.progress_bar import bar
from tests.client.server import Answer, answering

DONE = {"id": 1, "kind": "probe", "status": "succeeded", "result": 42}
HALF = DONE | {"status": "running", "progress": {"percent": 50, "step": "half <way>"}}


def _executed(*cells: str) -> list[Any]:
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(
        book, timeout=60, kernel_name="python3", resources={"metadata": {"path": "."}}
    ).execute()
    return [cell["outputs"] for cell in book.cells]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_synchronous_client_works_in_a_notebook_and_draws_how_far_it_is() -> None:
    answers = [
        Answer(body={"data": HALF}),
        Answer(body={"data": HALF}),
        Answer(body={"data": DONE}),
    ]
    with answering(*answers) as scripted:
        loop, shown = _executed(
            "import asyncio; asyncio.get_running_loop().is_running()",
            f"import penstock; penstock.connect({scripted.url!r}, 'key').jobs.get(1).wait().result",
        )
    assert loop[0]["data"]["text/plain"] == "True"
    assert shown[-1]["data"]["text/plain"] == "42"
    [picture] = [
        output["data"]["text/html"] for output in shown if "text/html" in output.get("data", {})
    ]
    assert "Job 1" in picture
    assert "<progress max='100' value='100'>" in picture
    assert "succeeded" in picture


def test_a_terminal_shows_the_bar_on_stderr_and_a_pipe_shows_nothing() -> None:
    code = (
        "from penstock.client.progress_bar import bar\nwith bar('Loading [x]', show=True) as "
        "draw: draw(50.0, 'half')"
    )
    leader, follower = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=follower, check=True
    )
    os.close(follower)
    drawn = os.read(leader, 65536).decode()
    os.close(leader)
    assert done.stdout == b""
    assert "Loading [x]" in drawn
    assert "half" in drawn
    piped = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert (piped.stdout, piped.stderr) == (b"", b"")


def test_nobody_looks_at_a_bar_that_is_not_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    with bar("quiet", show=False) as draw:
        draw(10.0, "step")
    assert capsys.readouterr() == ("", "")
