"""Payloads of maintenance jobs: the table, the actions and the engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.maintenance.actions.model import Action, parse

if TYPE_CHECKING:
    from penstock.maintenance.tables.table_access import Identifier

MAINTENANCE = "maintenance"
REMOTE = "remote_maintenance"
CANCEL_REMOTE = "cancel_maintenance"
EMBEDDED = "embedded"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableName:
    catalog: str
    db: str
    table: str

    def __str__(self) -> str:
        return f"{self.catalog}.{self.db}.{self.table}"

    @property
    def lock_key(self) -> str:
        return f"table:{self}"

    @property
    def identifier(self) -> Identifier:
        return (*self.db.split("."), self.table)

    def values(self) -> dict[str, str]:
        return {"catalog": self.catalog, "db": self.db, "table_name": self.table}


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    name: TableName
    actions: tuple[Action, ...]
    engine: str = EMBEDDED
    dry_run: bool = False
    reason: str = ""

    @property
    def kind(self) -> str:
        return MAINTENANCE if self.engine == EMBEDDED else REMOTE

    def to_json(self) -> dict[str, Any]:
        return {
            "catalog": self.name.catalog,
            "db": self.name.db,
            "table": self.name.table,
            "actions": [action.to_json() for action in self.actions],
            "engine": self.engine,
            "dry_run": self.dry_run,
            "reason": self.reason,
        }

    @classmethod
    def read(cls, payload: dict[str, Any]) -> Order:
        return cls(
            name=TableName(catalog=payload["catalog"], db=payload["db"], table=payload["table"]),
            actions=parse(payload["actions"]),
            engine=payload["engine"],
            dry_run=payload["dry_run"],
            reason=payload["reason"],
        )
