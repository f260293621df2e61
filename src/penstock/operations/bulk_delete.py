"""Bulk delete by filters: the caller states the expected count; each resource's rules apply."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.graphs.snapshots.repository import SQL
from penstock.kit import logging
from penstock.kit.errors import InvalidInput, NotFound, PenstockError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from penstock.graphs.runtime_config import Audit, ResourceKind
    from penstock.kit.db import Db
    from penstock.operations.deletion import DeletionHooks, End

log = logging.get(__name__)
MOST = 100
MAX_CONCURRENT = 5
"""Stopping an instance is slow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkFilter:
    name_prefix: str | None = None
    created_by: str | None = None
    older_than: timedelta | None = None
    status: str | None = None

    def values(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    ids: list[int] = field(default_factory=list)
    errors: dict[int, str] = field(default_factory=dict)


class BulkDelete:
    def __init__(self, db: Db, hooks: DeletionHooks, *, audit: Audit | None = None) -> None:
        self._db = db
        self._hooks = hooks
        self._audit = audit

    async def match(self, kind: ResourceKind, which: BulkFilter) -> list[int]:
        """Ids that match the filters; InvalidInput without a filter or with too many matches."""
        if all(value is None for value in which.values().values()):
            raise InvalidInput("At least one filter is required.", field="filters")
        if kind == "mapping" and which.status is not None:
            raise InvalidInput("Mappings have no status.", field="filters.status")
        rows = await self._db.fetch(SQL.bulk_match, kind=kind, **which.values(), limit=MOST + 1)
        if len(rows) > MOST:
            raise InvalidInput(
                f"More than {MOST} {kind}s match.",
                hint="Narrow the filters and delete in parts.",
                maximum=MOST,
            )
        return [row["id"] for row in rows]

    async def delete(
        self, kind: ResourceKind, which: BulkFilter, *, expected: int, actor: str, reason: str
    ) -> tuple[list[int], Deleted]:
        """Delete the matches; one that cannot be deleted does not stop the others."""
        ids = await self.match(kind, which)
        if len(ids) != expected:
            raise InvalidInput(
                f"{len(ids)} {kind}s match, not {expected}.",
                hint="Review them with dry_run first.",
                field="expected_count",
                matched_count=len(ids),
            )
        await self._note(kind, ids, actor, reason)
        return ids, await self._delete_all(kind, ids, actor)

    async def _delete_all(self, kind: ResourceKind, ids: Sequence[int], actor: str) -> Deleted:
        done = Deleted()
        for start in range(0, len(ids), MAX_CONCURRENT):
            few = ids[start : start + MAX_CONCURRENT]
            errors = await asyncio.gather(
                *(self._delete_one(kind, resource_id, actor) for resource_id in few)
            )
            for resource_id, error in zip(few, errors, strict=True):
                if error is None:
                    done.ids.append(resource_id)
                else:
                    done.errors[resource_id] = error
        return done

    async def _delete_one(self, kind: ResourceKind, resource_id: int, actor: str) -> str | None:
        """The error, or None if the resource is gone."""
        end: End = getattr(self._hooks, kind)
        try:
            await end(resource_id, actor)
        except NotFound:
            return None
        except PenstockError as e:
            return f"{e.code}: {e.message}"
        except Exception:
            log.exception("bulk_delete_failed", kind=kind, id=resource_id)
            return "INTERNAL: Internal error; see the log of the control plane."
        return None

    async def _note(self, kind: ResourceKind, ids: Sequence[int], actor: str, reason: str) -> None:
        log.info("bulk_delete", kind=kind, count=len(ids), actor=actor)
        if self._audit is not None:
            async with self._db.transaction() as tx:
                await self._audit(
                    tx, actor, "bulk.delete", f"{kind}s", {"reason": reason, "ids": list(ids)}
                )
