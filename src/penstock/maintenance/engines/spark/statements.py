"""What both Spark engines have in common: their statements, and how a commit of theirs is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from penstock.maintenance.actions.model import Name
from penstock.maintenance.engines.spark.sql import statement

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyiceberg.table import Table

    from penstock.maintenance.actions.context import ActionContext
    from penstock.maintenance.actions.model import Action
    from penstock.maintenance.engines.contract import RemoteQuery
    from penstock.maintenance.engines.spark.address import Address
    from penstock.maintenance.payloads import TableName


class SparkStatements:
    name = "spark"

    def __init__(self, address: Address) -> None:
        self._address = address

    @property
    def client_timeout(self) -> float:
        return self._address.client_timeout

    def statement(
        self,
        action: Action,
        name: TableName,
        table: Table,
        context: ActionContext,
        *,
        dry_run: bool,
    ) -> str:
        return statement(action, name, self._address.catalog, table, context, dry_run=dry_run)

    def previews(self, action: Action) -> bool:
        return action.name is Name.REMOVE_ORPHAN_FILES

    def owns_snapshot(self, query: RemoteQuery, summary: Mapping[str, str]) -> bool:  # noqa: ARG002
        """A procedure cannot tag its snapshot. Nobody else maintains the table, so any replace
        snapshot since the start is ours."""
        return (
            summary.get("operation") == "replace" and summary.get("engine-name", "spark") == "spark"
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None
