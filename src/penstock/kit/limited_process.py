"""Runs a Python module of ours in a process of its own that cannot take more than it is allowed.

What strangers send is parsed there: a file that asks for too much memory or never ends costs its
own process and nothing else. The parent calls `run`; the module calls `enter` before it looks at
its input. They exchange files in one folder: `request.json`, `answer.json` and `errors.txt`.

The process has its own session, so that it and everything it starts can be killed as one group, an
environment without any secret of ours, and no open file but these.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import resource
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import orjson

from penstock.kit.memory import data_bytes
from penstock.kit.priority import lower_priority

if TYPE_CHECKING:
    from collections.abc import Mapping

Reason = Literal["time", "memory", "crash"]
REQUEST, ANSWER, ERRORS = "request.json", "answer.json", "errors.txt"
MAX_ANSWER_BYTES = 16 * 1024 * 1024
_ERROR_BYTES = 2000
_PR_SET_PDEATHSIG = 1
_INHERITED = ("PATH", "LANG", "LC_ALL", "TMPDIR", "TZ", "PYTHONPATH", "LD_LIBRARY_PATH")
_ENVIRONMENT = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",  # the others reserve gigabytes of addresses at once
    "ARROW_IO_THREADS": "1",
    "MALLOC_ARENA_MAX": "2",
    "OMP_NUM_THREADS": "1",
    "TOKIO_WORKER_THREADS": "1",
}
_OUT_OF_MEMORY = (b"memory allocation of", b"bad_alloc", b"MemoryError", b"out of memory")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessLimits:
    """What one process may take beyond what its libraries need to be loaded."""

    memory_bytes: int
    cpu_seconds: int
    wall_seconds: float
    file_bytes: int
    """Size of any one file that it writes."""


class ProcessStopped(Exception):
    """The process ended without an answer; `reason` says which limit it met."""

    def __init__(self, reason: Reason, errors: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.errors = errors


async def run(
    module: str, request: Mapping[str, object], folder: Path, limits: ProcessLimits
) -> bytes:
    """The module's answer; the folder is empty or has files that the request names."""
    request = dict(request) | {
        "memory_bytes": limits.memory_bytes,
        "cpu_seconds": limits.cpu_seconds,
        "file_bytes": limits.file_bytes,
        "parent": os.getpid(),
    }
    await asyncio.to_thread((folder / REQUEST).write_bytes, orjson.dumps(request))
    code = await _wait(module, folder, limits.wall_seconds)
    answer, errors = await asyncio.to_thread(_read, folder)
    if code == 0 and answer is not None:
        return answer
    raise ProcessStopped(_reason(code, errors), errors.decode(errors="replace"))


def enter(folder: Path) -> dict[str, object]:
    """Called by the module in its own process: the request, with its limits in force from now."""
    request: dict[str, object] = orjson.loads((folder / REQUEST).read_bytes())
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != request["parent"]:
        sys.exit("the process that asked for this has ended")
    memory, cpu = _number(request, "memory_bytes"), _number(request, "cpu_seconds")
    lower_priority()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _lower(resource.RLIMIT_CPU, cpu, kill_after=1)
    _lower(resource.RLIMIT_FSIZE, _number(request, "file_bytes"))
    _lower(resource.RLIMIT_DATA, data_bytes() + memory)
    _lower(resource.RLIMIT_AS, _address_bytes() + memory)
    return request


def _number(request: Mapping[str, object], name: str) -> int:
    return int(str(request[name]))


def _lower(kind: int, bound: int, *, kill_after: int = 0) -> None:
    """A limit that is in force already may be lower than ours."""
    _, hard = resource.getrlimit(kind)
    unlimited = hard == resource.RLIM_INFINITY
    top = bound + kill_after if unlimited else min(bound + kill_after, hard)
    resource.setrlimit(kind, (min(bound, top), top))


def _address_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_bytes().split()[0])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def _wait(module: str, folder: Path, seconds: float) -> int | None:
    """The exit code; None when the process was killed for taking too long."""
    environment = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    with (folder / ERRORS).open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            module,
            str(folder),
            env=environment | _ENVIRONMENT,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )
    try:
        return await asyncio.wait_for(process.wait(), seconds)
    except TimeoutError:
        return None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def _read(folder: Path) -> tuple[bytes | None, bytes]:
    with (folder / ERRORS).open("rb") as file:
        file.seek(max(0, (folder / ERRORS).stat().st_size - _ERROR_BYTES))
        errors = file.read(_ERROR_BYTES)
    answer = folder / ANSWER
    if not answer.is_file() or answer.stat().st_size > MAX_ANSWER_BYTES:
        return None, errors
    return answer.read_bytes(), errors


def _reason(code: int | None, errors: bytes) -> Reason:
    if code is None or code == -signal.SIGXCPU:
        return "time"
    if any(words in errors for words in _OUT_OF_MEMORY):
        return "memory"
    return "crash"
