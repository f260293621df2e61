"""wrk, the load generator of Debian: this machine's, or one unpacked into `.cache/wrk`."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.servers import debian
from tests.servers.parts import LOCAL, Part, alone

if TYPE_CHECKING:
    from collections.abc import Sequence

CACHE = LOCAL / "wrk"
BINARY = CACHE / "root/usr/bin/wrk"
SCRIPT = Path(__file__).with_name("wrk.lua")
ANSWER_SECONDS = 60
"""After which wrk counts a request as timed out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    method: str
    path: str
    headers: dict[str, str] = field(default_factory=dict)
    body: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """Times in seconds. `status` counts answers of 400 and more."""

    requests: int
    seconds: float
    p50: float
    p99: float
    status: int
    socket: int
    timeout: int

    @property
    def per_second(self) -> float:
        return self.requests / self.seconds

    @property
    def errors(self) -> int:
        return self.status + self.socket + self.timeout


async def load(
    url: str, requests: Sequence[Request], *, clients: int, seconds: float, folder: Path
) -> Answered:
    """The requests in turns from that many connections, each asking again as soon as it has its
    answer."""
    if not PART.present():
        await asyncio.to_thread(PART.fetch)
    script = folder / "plan.lua"
    script.write_text(f"PLAN = {{\n{''.join(map(_lua, requests))}}}\n{SCRIPT.read_text()}")
    command = [shutil.which("wrk") or str(BINARY), "-t", str(min(2, clients)), "-c", str(clients)]
    command += [
        "-d",
        f"{max(1, round(seconds))}s",
        "--timeout",
        f"{ANSWER_SECONDS}s",
        "-s",
        str(script),
        url,
    ]
    process = await asyncio.create_subprocess_exec(
        *command, env=os.environ | {"LD_LIBRARY_PATH": _libraries()}, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"wrk ended with {process.returncode}: {output.decode()[-1000:]}")
    return Answered(**json.loads(output.splitlines()[-1]))


def _lua(request: Request) -> str:
    headers = ", ".join(
        f"[ {_text(name)} ] = {_text(value)}" for name, value in request.headers.items()
    )
    fields = [f"method = {_text(request.method)}", f"path = {_text(request.path)}"]
    fields.append(f"headers = {{{headers}}}")
    if request.body is not None:
        fields.append(f"body = {_text(request.body)}")
    return f"{{{', '.join(fields)}}},\n"


def _text(value: str) -> str:
    return f"[==[{value}]==]"


def _libraries() -> str:
    return ":".join(sorted({str(file.parent) for file in (CACHE / "root").rglob("*.so*")}))


def _present() -> bool:
    return shutil.which("wrk") is not None or (CACHE / "unpacked").exists()


def _fetch() -> None:
    with alone(CACHE):
        debian.unpack(["wrk"], CACHE)
        (CACHE / "unpacked").touch()


PART = Part(name="wrk", present=_present, fetch=_fetch)
