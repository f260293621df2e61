"""Creates remote engines from their configuration; each is imported when a job needs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.maintenance.engines.contract import RemoteEngine


def open_engine(config: Mapping[str, str], trace: str) -> RemoteEngine:
    """`trace` is the trace token in the engine's query records, if the engine supports one."""
    if config["type"] == "trino":
        from penstock.maintenance.engines.trino import TrinoEngine

        return TrinoEngine(config, trace)
    from penstock.maintenance.engines.spark.address import read_address

    address = read_address(config)
    if address.connect:
        from penstock.maintenance.engines.spark.connect import ConnectEngine

        return ConnectEngine(address)
    from penstock.maintenance.engines.spark.hive import HiveEngine

    return HiveEngine(address)
