"""Trino and Starburst driver: a client of their HTTP protocol that converts JSON pages to Arrow
without Python rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.kit.outbound import FOR_OPERATOR, Outbound
from penstock.sources.config import read
from penstock.sources.trino.config import Config
from penstock.sources.trino.source import TrinoSource

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Config", "TrinoSource", "connect"]


def connect(
    config: Mapping[str, object], secrets: Mapping[str, str], outbound: Outbound = FOR_OPERATOR
) -> TrinoSource:
    return TrinoSource(read(Config, config, secrets, source="trino"), outbound=outbound)
