"""An engine that was taken over, with the guard off: each attempt fails there, and succeeds
outside."""

from __future__ import annotations

import asyncio
import os
import pickle
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from penstock.graph_server.isolation.isolation import examine, server_reach
from penstock.graph_server.isolation.unprivileged_user import number_of
from penstock.storage.object_store import open_store
from tests.graph_server.conftest import EDGES, NODES
from tests.graph_server.control_plane import INSTANCE
from tests.graph_server.hostile.attempts import ATTEMPTS, NEED_ROOT, THROUGH, Targets
from tests.graph_server.server import GraphServer, running_server
from tests.graph_server.snapshots import publish
from tests.kit.conftest import root_only

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from penstock.graph_server.isolation.permissions import Reach

ROOT = Path(__file__).parents[2]
HOSTILE = [sys.executable, "-m", "tests.graph_server.hostile"]
ON_FALKORDB = {"unix_socket"}
"""An engine that speaks to a database by a unix socket keeps that family; what listens there asks
who it is."""
_READING = "0000000000000004"
"""The one capability that is left: to read past permissions, where Landlock lets it."""
_VICTIM = """
import ctypes, sys
secret = ctypes.create_string_buffer(b"rows of somebody else")
print(ctypes.addressof(secret), flush=True)
sys.stdin.read()
"""


@contextmanager
def listening(stack: ExitStack) -> Iterator[Targets]:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pg-")))
    folder.chmod(0o755)
    (folder / "root").mkdir()
    tcp, other = (stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2))
    udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    udp.bind(("127.0.0.1", 0))
    names = (str(folder / "s"), f"\0penstock-{os.getpid()}")
    for name in names:
        unix = stack.enter_context(socket.socket(socket.AF_UNIX))
        unix.bind(name)
        unix.listen(100)
    victim = stack.enter_context(
        subprocess.Popen(
            [sys.executable, "-c", _VICTIM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"SECRET": "token-of-the-plane"},
        )
    )
    assert victim.stdout is not None
    try:
        yield Targets(
            tcp_port=tcp.getsockname()[1],
            other_tcp_port=other.getsockname()[1],
            udp_port=udp.getsockname()[1],
            unix_socket=names[0],
            abstract_name=names[1][1:],
            pid=victim.pid,
            secret="token-of-the-plane",
            address=int(victim.stdout.readline()),
            folder=str(folder / "root"),
        )
    finally:
        victim.kill()


@pytest.fixture(scope="module")
def targets() -> Iterator[Targets]:
    with ExitStack() as stack, listening(stack) as there:
        yield there


@pytest.fixture(scope="module", params=["ladybug", "ryugraph", "falkordb"])
async def hostile_server(request: pytest.FixtureRequest) -> AsyncIterator[GraphServer]:
    with tempfile.TemporaryDirectory(prefix="pg-") as folder:
        root = Path(folder) / "storage"
        root.mkdir()
        nodes = [node for node in NODES if node.label == "City"]
        edges = EDGES if request.param != "falkordb" else []
        nodes = NODES if edges else nodes
        snapshot = await publish(open_store(str(root)), nodes, edges, prefix="ada/5/v3/42/")
        settings = {"instance_guard": "false", "instance_backend": request.param}
        async with running_server(
            Path(folder) / "i", f"file://{root}", snapshot, command=HOSTILE, **settings
        ) as server:
            yield server


@pytest.mark.parametrize("attempt", sorted(ATTEMPTS))
async def test_an_engine_that_was_taken_over_gets_nowhere(
    hostile_server: GraphServer, targets: Targets, attempt: str
) -> None:
    if attempt in ON_FALKORDB and "falkordb" in await _backend(hostile_server):
        pytest.skip(
            "this engine needs the family of sockets; see test_postgres_cluster for what protects "
            "it"
        )
    answer = await hostile_server.query(f"ATTEMPT {attempt} {targets.packed()}")
    assert answer.status_code == 200, answer.text
    [[outcome]] = answer.json()["rows"]
    assert outcome.startswith(("PermissionError", "OSError")), outcome
    assert (
        "Operation not permitted" in outcome
        or "Permission denied" in outcome
        or "refused" in outcome
    )


@pytest.mark.parametrize("attempt", sorted(ATTEMPTS))
async def test_outside_the_same_attempt_gets_through(targets: Targets, attempt: str) -> None:
    """So what it fails of inside is the confinement."""
    if attempt in NEED_ROOT and os.geteuid():
        pytest.skip("only root may do this anywhere")
    assert await _try(attempt, targets) == THROUGH


async def test_an_engine_whose_database_is_elsewhere_reaches_its_port_alone(
    targets: Targets,
) -> None:
    reach = examine().engine_reach(
        read=[ROOT], write=[], database_url=f"redis://127.0.0.1:{targets.tcp_port}"
    )
    outcomes = {
        name: await _try(name, targets, reach)
        for name in ("tcp", "other_tcp", "udp", "listen", "raw")
    }
    assert outcomes.pop("tcp") == THROUGH
    assert all(outcome.startswith("PermissionError") for outcome in outcomes.values()), outcomes


async def test_every_process_of_a_graph_server_is_filtered_and_leaves_no_core(
    hostile_server: GraphServer,
) -> None:
    for pid in (hostile_server.process.pid, *(await hostile_server.engine())["pids"]):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
        limits = Path(f"/proc/{pid}/limits").read_text().splitlines()
        assert [line.split()[4:6] for line in limits if line.startswith("Max core")] == [["0", "0"]]


@root_only
async def test_a_graph_server_that_root_starts_does_not_run_as_root(
    hostile_server: GraphServer,
) -> None:
    engine = await hostile_server.engine()
    for pid in (hostile_server.process.pid, *engine["pids"]):
        process = psutil.Process(pid)
        assert set(process.uids()) == set(process.gids()) == {number_of(INSTANCE)}
        effective = next(
            line
            for line in Path(f"/proc/{pid}/status").read_text().splitlines()
            if line.startswith("CapEff")
        )
        assert effective == f"CapEff:\t{_READING}"
    assert (hostile_server.folder / "own").stat().st_uid == number_of(INSTANCE)


@pytest.mark.parametrize(
    "attempt", ["raw", "packet", "ptrace", "signal", "shell", "mount", "io_uring"]
)
async def test_the_server_in_front_of_the_engine_cannot_do_it_either(
    targets: Targets, attempt: str
) -> None:
    reach = server_reach(examine(), own=Path(targets.folder), storage=ROOT)
    assert (await _try(attempt, targets, reach)).startswith("PermissionError")


async def test_the_server_keeps_its_network_and_its_programs(targets: Targets) -> None:
    reach = server_reach(examine(), own=Path(targets.folder), storage=ROOT)
    for attempt in ("tcp", "udp", "fork", "unix_socket"):
        assert await _try(attempt, targets, reach) == THROUGH


async def _backend(server: GraphServer) -> str:
    backend: str = (await server.http.get("/status")).json()["backend"]
    return backend


async def _try(attempt: str, targets: Targets, reach: Reach | None = None) -> str:
    more = [] if reach is None else [pickle.dumps(reach).hex()]
    process = await asyncio.create_subprocess_exec(
        *(
            sys.executable,
            "-m",
            "tests.graph_server.hostile.attempts",
            attempt,
            targets.packed(),
            *more,
        ),
        cwd=ROOT,
        stdout=subprocess.PIPE,
    )
    outcome, _ = await process.communicate()
    return outcome.decode()
