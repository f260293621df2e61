"""Many things deleted at once, with care: by filters, as many as the caller expects, each by its
own rules."""

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
AT_ONCE = 5
"""An instance takes its time to end."""


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
    def __init__(self, db: Db, endings: DeletionHooks, *, audit: Audit | None = None) -> None:
        self._db = db
        self._endings = endings
        self._audit = audit

    async def match(self, kind: ResourceKind, which: BulkFilter) -> list[int]:
        """The things that fit; without a filter, or when they are too many, none is told."""
        if all(value is None for value in which.values().values()):
            raise InvalidInput("Name at least one filter.", field="filters")
        if kind == "mapping" and which.status is not None:
            raise InvalidInput("Mappings have no status.", field="filters.status")
        found = await self._db.fetch(SQL.bulk_match, kind=kind, **which.values(), limit=MOST + 1)
        if len(found) > MOST:
            raise InvalidInput(
                f"More than {MOST} {kind}s fit.",
                hint="Narrow the filters and do it in parts.",
                maximum=MOST,
            )
        return [row["id"] for row in found]

    async def delete(
        self, kind: ResourceKind, which: BulkFilter, *, expected: int, actor: str, reason: str
    ) -> tuple[list[int], Deleted]:
        """What fits, and what became of each. One that cannot be deleted keeps no other one."""
        ids = await self.match(kind, which)
        if len(ids) != expected:
            raise InvalidInput(
                f"{len(ids)} {kind}s fit, not {expected}.",
                hint="Look at them with dry_run first.",
                field="expected_count",
                matched_count=len(ids),
            )
        await self._note(kind, ids, actor, reason)
        return ids, await self._each(kind, ids, actor)

    async def _each(self, kind: ResourceKind, ids: Sequence[int], actor: str) -> Deleted:
        done = Deleted()
        for start in range(0, len(ids), AT_ONCE):
            few = ids[start : start + AT_ONCE]
            errors = await asyncio.gather(*(self._one(kind, each, actor) for each in few))
            for each, error in zip(few, errors, strict=True):
                if error is None:
                    done.ids.append(each)
                else:
                    done.errors[each] = error
        return done

    async def _one(self, kind: ResourceKind, each: int, actor: str) -> str | None:
        """Why it is still there; None when it is gone, whoever was quicker."""
        end: End = getattr(self._endings, kind)
        try:
            await end(each, actor)
        except NotFound:
            return None
        except PenstockError as e:
            return f"{e.code}: {e.message}"
        except Exception:
            log.exception("bulk_delete_failed", kind=kind, id=each)
            return "INTERNAL: Something went wrong on our side."
        return None

    async def _note(self, kind: ResourceKind, ids: Sequence[int], actor: str, reason: str) -> None:
        log.info("bulk_delete", kind=kind, count=len(ids), actor=actor)
        if self._audit is not None:
            async with self._db.transaction() as tx:
                await self._audit(
                    tx, actor, "bulk.delete", f"{kind}s", {"reason": reason, "ids": list(ids)}
                )
