"""Checks SQL outside the event loop, with a deadline.

Short queries are checked in a thread: the limits of `guard.size_limits` keep that to tenths of a
second. Long input, such as the hundreds of queries of a mapping, goes to a separate process, which
can be stopped where a thread cannot: it is killed at the deadline. At most `processes` of them run
at once, and one user's leave one to others.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

from penstock.guard.errors import SqlRefused, SqlTooLarge
from penstock.guard.sql import check
from penstock.kit.concurrency_limit import ConcurrencyLimit
from penstock.kit.errors import rebuild
from penstock.kit.priority import lower_priority

if TYPE_CHECKING:
    from collections.abc import Sequence

    Verdict: TypeAlias = str | SqlRefused

FEW_CHARACTERS = 16_000
DEADLINE_SECONDS = 10.0
"""Of processor time."""
WALL_FACTOR = 6
"""A busy machine may take so many times the deadline before the process is killed."""
WAIT_SECONDS = 30.0


class SqlChecker:
    def __init__(
        self,
        *,
        processes: int = 2,
        few: int = FEW_CHARACTERS,
        deadline: float = DEADLINE_SECONDS,
        wait: float = WAIT_SECONDS,
    ) -> None:
        self._slots = ConcurrencyLimit(
            total=processes,
            per_user=max(1, processes - 1),
            patience=wait,
            subject="large queries to check",
        )
        self._few = few
        self._deadline = deadline

    async def check(
        self, queries: Sequence[str], dialect: str, *, username: str = ""
    ) -> list[Verdict]:
        """For each query the SQL that may run, or the error that refuses it."""
        if sum(map(len, queries)) <= self._few:
            return await asyncio.to_thread(_verdicts, queries, dialect)
        async with self._slots.slot(username):
            return await self._in_a_process(queries, dialect)

    async def _in_a_process(self, queries: Sequence[str], dialect: str) -> list[Verdict]:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            "-m",
            "penstock.guard.checker_process",
            dialect,
            str(int(self._deadline) + 1),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={},
        )
        try:
            async with asyncio.timeout(self._deadline * WALL_FACTOR):
                output, _ = await process.communicate(json.dumps(list(queries)).encode())
        except TimeoutError:
            output = b""
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        if not output:
            raise SqlTooLarge(
                f"The queries could not be checked within {self._deadline:g} seconds of"
                " processor time.",
                hint="Use shorter or fewer queries: move a long query to a view in the source.",
            )
        return [_decoded(verdict) for verdict in json.loads(output)]


def _verdicts(queries: Sequence[str], dialect: str) -> list[Verdict]:
    return [_verdict(sql, dialect) for sql in queries]


def _verdict(sql: str, dialect: str) -> Verdict:
    try:
        return check(sql, dialect).sql
    except SqlRefused as e:
        return e


def _encoded(verdict: Verdict) -> object:
    if isinstance(verdict, str):
        return verdict
    return [verdict.code, verdict.message, verdict.hint, verdict.details]


def _decoded(verdict: str | tuple[str, str, str | None, dict[str, object]]) -> Verdict:
    if isinstance(verdict, str):
        return verdict
    code, message, hint, details = verdict
    error = rebuild(code, message, hint=hint, details=details)
    return error if isinstance(error, SqlRefused) else SqlRefused(message, hint=hint)


def main() -> None:
    """Check the queries on standard input; the CPU limit ends the process if its parent is gone."""
    dialect, seconds = sys.argv[1], int(sys.argv[2])
    lower_priority()
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    verdicts = _verdicts(json.load(sys.stdin), dialect)
    sys.stdout.write(json.dumps([_encoded(verdict) for verdict in verdicts]))


if __name__ == "__main__":
    main()
