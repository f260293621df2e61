from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.proof.invariants import broken
from tests.proof.stand import Stand, stand_on

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def stand(database: str) -> AsyncIterator[Stand]:
    """A stand on a fresh database; whatever the test did, the invariants hold after it."""
    async with stand_on(database) as made:
        yield made
        assert await broken(made.eye) == []
