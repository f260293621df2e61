"""What maintenance jobs carry and ask for: the table, the actions, the engine, other tables.

Written by `service`, read by the handlers and the internal API. Values only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from penstock.maintenance.actions.model import Action, parse

if TYPE_CHECKING:
    from penstock.kit.json_value import JsonObject
    from penstock.maintenance.tables.catalog.table_access import Identifier

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
class OtherTable:
    """Another table than the job's, as far as the control plane knows it."""

    catalog: str
    db: str
    table: str
    metadata_location: str | None = None
    location: str | None = None


class OrderDocument(TypedDict):
    """An `Order` as its job carries it."""

    catalog: str
    db: str
    table: str
    actions: list[JsonObject]
    engine: str
    dry_run: bool
    reason: str


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

    def to_json(self) -> OrderDocument:
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
    def read(cls, payload: OrderDocument) -> Order:
        return cls(
            name=TableName(catalog=payload["catalog"], db=payload["db"], table=payload["table"]),
            actions=parse(payload["actions"]),
            engine=payload["engine"],
            dry_run=payload["dry_run"],
            reason=payload["reason"],
        )
