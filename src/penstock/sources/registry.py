"""The registry of source drivers. A driver's module is imported on first use; it has a function
`connect`, which takes a configuration and secrets and returns a `Source`."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from penstock.kit.errors import InvalidInput
from penstock.kit.outbound import WITH_PRIVATE, Outbound, OutboundPolicy
from penstock.sources.errors import DriverMissing

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    from penstock.sources.contract import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    module: str
    extra: str
    dialect: str
    """The SQL dialect, known without opening the source."""
    roles: bool = False
    """Whether every query needs a role (`starburst_role`), which a job may choose for itself, with
    a catalog."""


DRIVERS: Mapping[str, Driver] = {
    "bigquery": Driver(module="penstock.sources.bigquery", extra="bigquery", dialect="bigquery"),
    "duckdb": Driver(module="penstock.sources.duckdb", extra="duckdb", dialect="duckdb"),
    "elasticsearch": Driver(
        module="penstock.sources.elasticsearch", extra="worker", dialect="trino"
    ),
    "files": Driver(module="penstock.sources.files", extra="worker", dialect="duckdb"),
    "mysql": Driver(module="penstock.sources.mysql", extra="mysql", dialect="mysql"),
    "postgres": Driver(module="penstock.sources.postgres", extra="postgres", dialect="postgres"),
    "trino": Driver(
        module="penstock.sources.trino",
        extra="worker",
        dialect="trino",
        roles=True,
    ),
}


def open_source(
    kind: str,
    config: Mapping[str, object],
    secrets: Mapping[str, str],
    *,
    outbound: OutboundPolicy = WITH_PRIVATE,
) -> Source:
    """The source, not yet connected; raises `InvalidInput` for a wrong configuration and
    `DriverMissing` if the driver is not installed.

    `outbound` restricts its connections. By default, as for an operator at a terminal, only
    reserved addresses are blocked."""
    driver = DRIVERS.get(kind)
    if driver is None:
        raise InvalidInput(
            f"There is no source type {kind!r}.", hint=f"Known: {', '.join(DRIVERS)}."
        )
    source: Source = _load(kind, driver).connect(config, secrets, Outbound(outbound))
    return source


def _load(kind: str, driver: Driver) -> ModuleType:
    try:
        return import_module(driver.module)
    except ModuleNotFoundError as e:
        raise DriverMissing(
            f"The {kind} driver needs {e.name}, which is not installed.",
            hint=f"pip install 'penstock[{driver.extra}]'",
        ) from None
