"""How many statements a request costs: the application in this process, asked several times, the
least counted, for the background loops ask things too."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx2

from penstock.api.app import create_app
from penstock.kit.db import Tx
from penstock.kit.vault import new_key
from penstock.wiring.control_plane import build_control_plane
from penstock.wiring.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

TIMES = 7
TOKEN = "operator"


class Counter:
    def __init__(self) -> None:
        self.count = 0

    @contextmanager
    def watching(self) -> Iterator[None]:
        originals = {name: getattr(Tx, name) for name in ("fetch", "row", "value", "changed")}
        for name, verb in originals.items():
            setattr(Tx, name, self._counted(verb))
        try:
            yield
        finally:
            for name, verb in originals.items():
                setattr(Tx, name, verb)

    def _counted(self, verb: Any) -> Any:
        async def counted(tx: Tx, statement: Any, **values: Any) -> Any:
            self.count += 1
            return await verb(tx, statement, **values)

        return counted


async def counts(dsn: str, home: Path, paths: Mapping[str, str]) -> dict[str, int]:
    """The statements of a GET of each path, by the path's name."""
    settings = Settings(
        home=home, operator_token=TOKEN, service_token="service", secret_key=new_key(), port=0
    )
    counter = Counter()
    async with build_control_plane(settings, dsn) as services:
        transport = httpx2.ASGITransport(app=create_app(services))
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with httpx2.AsyncClient(
            transport=transport, base_url="http://bench", headers=headers
        ) as http:
            with counter.watching():
                return {
                    name: min([await _once(http, path, counter) for _ in range(TIMES)])
                    for name, path in paths.items()
                }


async def _once(http: httpx2.AsyncClient, path: str, counter: Counter) -> int:
    counter.count = 0
    (await http.get(path)).raise_for_status()
    return counter.count
