"""One run of the postgres program, from its first line in the log to its exit code."""

from __future__ import annotations

import asyncio
from signal import SIGKILL, SIGQUIT, Signals
from typing import IO, TYPE_CHECKING

import asyncpg

from penstock.kit.postgres import process
from penstock.kit.postgres.errors import PostgresFailed
from penstock.kit.postgres.paths import open_own

if TYPE_CHECKING:
    from asyncio.subprocess import Process

    from penstock.kit.postgres.holder import Lock
    from penstock.kit.postgres.paths import Places
    from penstock.kit.postgres.settings import Shutdown

_LOG_LIMIT = 16 << 20
_NOT_YET = (OSError, TimeoutError, asyncpg.PostgresConnectionError, asyncpg.CannotConnectNowError)


class Server:
    def __init__(self, child: Process, places: Places, log_start: int) -> None:
        self._child = child
        self._places = places
        self._log_start = log_start

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def code(self) -> int | None:
        return self._child.returncode

    async def exited(self) -> int:
        return await self._child.wait()

    async def answer(self, dsn: str, deadline: float) -> asyncpg.Connection[asyncpg.Record] | None:
        """A real connection, which alone proves that the server is ready; None if it ended
        first.
        """
        while self.code is None:
            try:
                return await asyncpg.connect(dsn, timeout=5)
            except asyncpg.InvalidPasswordError as e:
                raise PostgresFailed(
                    f"The password in {self._places.password} is not the one of these data.",
                    hint=f"Let the next start make a new one: rm {self._places.password}",
                ) from e
            except _NOT_YET as e:
                if asyncio.get_running_loop().time() > deadline:
                    raise PostgresFailed(
                        "PostgreSQL runs, but did not answer in time.",
                        hint=f"Its log is {self._places.log}.",
                    ) from e
                await asyncio.sleep(0.01)
        return None

    def last_words(self) -> str:
        with open(self._places.log, "rb", opener=open_own) as written:
            written.seek(self._log_start)
            return written.read(1 << 20).decode(errors="replace")

    async def end(self, how: Shutdown, patience: float) -> None:
        """Ask; then insist; then kill."""
        for signal, seconds in (
            (how.value, patience),
            (SIGQUIT, min(patience, 6.0)),
            (SIGKILL, 60.0),
        ):
            if self.code is None:
                await self._signalled(signal, seconds)

    async def _signalled(self, signal: Signals, seconds: float) -> None:
        try:
            self._child.send_signal(signal)
            await asyncio.wait_for(self._child.wait(), seconds)
        except (ProcessLookupError, TimeoutError):
            return


async def launch(command: list[str], places: Places, lock: Lock) -> Server:
    """Start the program as our child, with a share of the lock."""
    with _open_log(places) as out:
        log_start = out.tell()
        child = await process.spawn(
            places.account,
            command,
            cwd=places.folder,
            keep=lock.fd,
            on_our_death=SIGQUIT,
            output=out,
        )
        return Server(child, places, log_start)


def _open_log(places: Places) -> IO[bytes]:
    """For more lines at its end; one that has grown large is put aside first."""
    if places.log.exists() and places.log.stat().st_size > _LOG_LIMIT:
        places.log.replace(places.log.with_suffix(".log.1"))
    out = open(places.log, "ab", opener=open_own)  # noqa: SIM115 - the caller closes it
    places.account.own(out.fileno())
    return out
