"""What both ways to a Spark have in common: its statements, and how its commits are known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from penstock.maintenance.actions.model import Name
from penstock.maintenance.engines.spark.sql import statement

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyiceberg.table import Table

    from penstock.maintenance.actions.context import Run
    from penstock.maintenance.actions.model import Action
    from penstock.maintenance.engines.contract import Held
    from penstock.maintenance.engines.spark.address import Address
    from penstock.maintenance.payloads import TableName


class SparkStatements:
    name = "spark"

    def __init__(self, address: Address) -> None:
        self._address = address

    @property
    def patience(self) -> float:
        return self._address.patience

    def statement(
        self, action: Action, name: TableName, table: Table, run: Run, *, dry_run: bool
    ) -> str:
        return statement(action, name, self._address.catalog, table, run, dry_run=dry_run)

    def previews(self, action: Action) -> bool:
        return action.name is Name.REMOVE_ORPHAN_FILES

    def made(self, held: Held, summary: Mapping[str, str]) -> bool:  # noqa: ARG002 - a procedure cannot be told to say who asked
        """Nobody but us maintains the table, so a rewrite that came since we began is ours."""
        return (
            summary.get("operation") == "replace" and summary.get("engine-name", "spark") == "spark"
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None
