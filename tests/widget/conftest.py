from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.servers.chromium import browser
from tests.widget.screen import Screen, opened

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from playwright.async_api import Browser


@pytest.fixture(scope="session")
async def chromium() -> AsyncIterator[Browser]:
    async with browser() as launched:
        yield launched


@pytest.fixture(scope="session")
async def one_screen(chromium: Browser) -> AsyncIterator[Screen]:
    async with opened(chromium) as screen:
        yield screen


@pytest.fixture
def screen(one_screen: Screen) -> Iterator[Screen]:
    """The one page of this test process; a page costs more than a navigation."""
    one_screen.asked.clear()
    one_screen.faults.clear()
    yield one_screen
    assert one_screen.faults == []
