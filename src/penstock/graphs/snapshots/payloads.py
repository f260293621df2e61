"""Payload and parked state of export jobs, shared by the control plane and workers.

They never contain credentials."""

from __future__ import annotations

import enum
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from penstock.graphs.errors import ExportTooLarge
from penstock.sources.contract import ParkedQuery
from penstock.storage import keys

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.kit.json_value import JsonObject

JobType: TypeAlias = Literal["node", "edge"]
QUEUE = "export"
EXPORT = "export"
UNLOAD = "unload"
"""Exports that Trino writes itself: workers hold the job only briefly, so its lease is short."""
PUBLISH = "publish"
CANCEL_QUERY = "cancel_query"
FORGET_TABLE = "forget_table"
SWEEP = "sweep"
ERASE = "erase"
KINDS = (EXPORT, UNLOAD)


class Mode(enum.StrEnum):
    """Who writes the files: a worker, Trino's unload function, or Trino by CREATE TABLE AS."""

    DIRECT = "direct"
    UNLOAD = "unload"
    CTAS = "ctas"

    @property
    def kind(self) -> str:
        return EXPORT if self is Mode.DIRECT else UNLOAD


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A declared column; without a type, the query's type is used."""

    name: str
    type: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """A node label or an edge type; an edge type with several pairs of labels includes the pair."""

    job_type: JobType
    name: str
    from_node: str = ""
    to_node: str = ""

    def __str__(self) -> str:
        pair = f" ({self.from_node} to {self.to_node})" if self.from_node else ""
        return f"{self.job_type.capitalize()} {self.name}{pair}"

    @property
    def path(self) -> str:
        """Path below the snapshot's prefix; also its name in the manifest."""
        pair = (f"{self.from_node}-{self.to_node}",) if self.from_node else ()
        return keys.join(f"{self.job_type}s", self.name, *pair)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityExport:
    """A requested export of one entity."""

    entity: Entity
    sql: str
    columns: tuple[Column, ...] = ()
    mode: Mode = Mode.DIRECT
    data_source_id: int | None = None
    starburst_catalog: str | None = None
    starburst_role: str | None = None
    target_catalog: str | None = None
    target_schema: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportCaps:
    """Limits of one export; None: unlimited, as in payloads of earlier versions."""

    max_rows: int | None = None
    max_bytes: int | None = None

    def check(self, rows: int, size: int) -> None:
        for what, count, most in (("rows", rows, self.max_rows), ("bytes", size, self.max_bytes)):
            if most is not None and count > most:
                raise ExportTooLarge(
                    f"The query returns more than {most:,} {what}, the limit of one export.",
                    hint="Narrow the query, or ask an operator for a higher limit"
                    " (settings export_max_*).",
                    limit_type=f"max_{what}",
                    max_allowed=most,
                )


NO_CAPS = ExportCaps()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportPayload:
    """Payload of an export job; `prefix` is the entity's own folder."""

    snapshot_id: int
    prefix: str
    data_source_id: int
    source_type: str
    wanted: EntityExport
    caps: ExportCaps = NO_CAPS

    @property
    def entity(self) -> Entity:
        return self.wanted.entity

    def payload(self) -> JsonObject:
        export = asdict(self.wanted)
        entity = export.pop("entity")
        return {
            **export,
            **entity,
            "snapshot_id": self.snapshot_id,
            "prefix": self.prefix,
            "data_source_id": self.data_source_id,
            "source_type": self.source_type,
            **asdict(self.caps),
        }

    @classmethod
    def read(cls, payload: Mapping[str, Any]) -> ExportPayload:
        entity = Entity(**{name: payload[name] for name in Entity.__slots__})
        plain = {
            name: payload[name]
            for name in EntityExport.__slots__
            if name not in ("entity", "columns", "mode")
        }
        export = EntityExport(
            entity=entity,
            columns=tuple(Column(**column) for column in payload["columns"]),
            mode=Mode(payload["mode"]),
            **plain,
        )
        return cls(
            snapshot_id=payload["snapshot_id"],
            prefix=payload["prefix"],
            data_source_id=payload["data_source_id"],
            source_type=payload["source_type"],
            wanted=export,
            caps=ExportCaps(max_rows=payload.get("max_rows"), max_bytes=payload.get("max_bytes")),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryState:
    """A query that runs at Trino, in the state of its parked job.

    `attempt` names the folder that the query writes into (None: the entity's own), `table` the
    table that a CTAS creates. `attempt_no` is the attempt that submitted or last saw the query
    running; a later attempt that finds it failed submits a new query.
    """

    query_id: str
    next_uri: str
    poll_count: int
    submitted_at: str
    next_poll_at: str | None = None
    rows: int | None = None
    attempt: str | None = None
    attempt_no: int = 0
    table: tuple[str, str, str] | None = None

    @property
    def parked(self) -> ParkedQuery:
        """What the source needs to know of it."""
        return ParkedQuery(
            query_id=self.query_id, next_uri=self.next_uri, rows=self.rows, table=self.table
        )

    def state(self) -> JsonObject:
        return asdict(self)

    @classmethod
    def read(cls, state: Mapping[str, Any] | None) -> QueryState | None:
        if not state or not state.get("query_id"):
            return None
        values = {name: state[name] for name in cls.__slots__ if name in state}
        return cls(**values | {"table": tuple(state["table"]) if state.get("table") else None})
