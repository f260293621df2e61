from __future__ import annotations

import pytest

from penstock.engines.registry import ENGINES


@pytest.fixture(params=sorted(ENGINES))
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)
