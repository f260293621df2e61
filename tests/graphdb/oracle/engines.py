"""Clients of engine processes for the oracle; a crashed engine is restarted."""

from __future__ import annotations

import pickle
import select
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

from tests.servers.falkor import falkordb

if TYPE_CHECKING:
    from tests.graphdb.oracle.graphs import Graph

REPOSITORY = Path(__file__).parents[3]
PATIENCE = 60.0
"""Seconds for an answer. What breaks an engine's memory may make it spin instead of ending it."""
BACKENDS = ("ladybug", "ryugraph", "falkordb")
Outcome: TypeAlias = Literal["ok", "refused", "broken", "crashed"]


@dataclass(frozen=True, slots=True)
class Reply:
    outcome: Outcome
    types: list[str]
    rows: list[tuple[Any, ...]]
    message: str = ""


class Engine:
    """`with Engine(backend) as engine:`"""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self._stack = ExitStack()
        self._process: subprocess.Popen[bytes] | None = None
        self._graphs = 0
        self._servers = 0
        self._loaded: tuple[Any, ...] | None = None

    def __enter__(self) -> Self:
        self._folder = Path(
            self._stack.enter_context(tempfile.TemporaryDirectory(prefix="oracle-"))
        )
        self._server = self._stack.enter_context(ExitStack())
        self._url = self._start_server()
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        self._stack.close()

    def load(self, graph: Graph) -> None:
        self._graphs += 1
        folder = self._folder / str(self._graphs)
        folder.mkdir()
        self._loaded = (graph.schema, graph.files(folder))
        self._reload()

    def ask(self, text: str, parameters: dict[str, Any]) -> Reply:
        reply = self._request("ask", text, parameters)
        if reply is None:
            assert self._process is not None
            message = f"the process ended with {self._process.wait()}"
            self._end()
            self._graphs += 1
            self._reload()
            return Reply("crashed", [], [], message)
        outcome, content = reply
        if outcome == "refused" and content.startswith("UNAVAILABLE"):
            # A FalkorDB that died of the query.
            message = f"{content}\n{self._server_log()}"
            self._server.close()
            self._url = self._start_server()
            self._graphs += 1
            self._reload()
            return Reply("crashed", [], [], message)
        if outcome != "ok":
            return Reply(outcome, [], [], content)
        return Reply("ok", *content)

    def _start_server(self) -> str | None:
        if self.backend != "falkordb":
            return None
        self._servers += 1
        folder = self._folder / f"server-{self._servers}"
        folder.mkdir()
        return self._server.enter_context(falkordb(folder))

    def _server_log(self) -> str:
        return (self._folder / f"server-{self._servers}" / "falkor.log").read_text()[-3000:]

    def _reload(self) -> None:
        assert self._loaded is not None
        place = self._folder / f"engine-{self._graphs}"
        reply = self._request("load", place, self._url, *self._loaded)
        assert reply is not None, "the process ended while it loaded"
        assert reply[0] == "ok", reply

    def _request(self, method: str, *arguments: object) -> tuple[Outcome, Any] | None:
        if self._process is None:
            command = [sys.executable, "-m", "tests.graphdb.oracle.child", self.backend]
            self._process = subprocess.Popen(
                command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            pickle.dump((method, arguments), process.stdin)
            process.stdin.flush()
            if not select.select([process.stdout], [], [], PATIENCE)[0]:
                process.kill()
            reply: tuple[Outcome, Any] = pickle.load(process.stdout)
        except (EOFError, BrokenPipeError):
            return None
        return reply

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None
