"""Registry of engines; a driver's module is imported only when it is chosen."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from penstock.engines.errors import EngineError
from penstock.kit.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from penstock.engines.contract import Engine, EngineLimits

ENGINES: Mapping[str, str] = {
    "datafusion": "penstock.engines.datafusion",
    "duckdb": "penstock.engines.duckdb",
}
DEFAULT = "duckdb"


def open_engine(name: str, scratch: Path, limits: EngineLimits) -> Engine:
    """Open an engine that may write below `scratch` and read only that and the registered files."""
    module = ENGINES.get(name)
    if module is None:
        raise InvalidInput(
            f"There is no engine {name[:80]!r}.", hint=f"Known: {', '.join(ENGINES)}."
        )
    try:
        engine: Engine = import_module(module).connect(scratch, limits)
    except ModuleNotFoundError as e:
        raise EngineError(
            f"The {name} engine needs {e.name}, which is not installed.",
            hint="pip install 'penstock[reconcile]'",
        ) from None
    return engine
