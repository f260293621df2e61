from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.servers.trino import Trino, trino
from tests.servers.trino_fake import TrinoFake
from tests.sources.trino.subjects import FakeSubject, RealSubject, TrinoSubject

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator


@pytest.fixture(scope="session")
def real_trino(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trino]:
    """One server for all tests."""
    with trino(tmp_path_factory.mktemp("trino")) as server:
        yield server


@pytest.fixture
async def fake_trino() -> AsyncIterator[TrinoFake]:
    async with TrinoFake(client_timeout=30) as fake:
        yield fake


@pytest.fixture(params=["fake", "real"])
def trino_server(request: pytest.FixtureRequest) -> TrinoSubject:
    """Each of the two, to be asked the same."""
    if request.param == "fake":
        return FakeSubject(request.getfixturevalue("fake_trino"))
    return RealSubject(request.getfixturevalue("real_trino"))
