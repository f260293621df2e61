"""Engines elsewhere, by their configuration; each is loaded when a job needs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.maintenance.engines.contract import RemoteEngine


def open_engine(told: Mapping[str, Any], trace: str) -> RemoteEngine:
    """`trace` is what the engine's own records say of who asks, where it has a place for that."""
    if told["type"] == "trino":
        from penstock.maintenance.engines.trino import TrinoEngine

        return TrinoEngine(told, trace)
    from penstock.maintenance.engines.spark.address import read_address

    address = read_address(told)
    if address.connect:
        from penstock.maintenance.engines.spark.connect import ConnectEngine

        return ConnectEngine(address)
    from penstock.maintenance.engines.spark.hive import HiveEngine

    return HiveEngine(address)
