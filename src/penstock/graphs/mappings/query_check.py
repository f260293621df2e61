"""A mapping's queries, checked when they are written and not when they are exported.

Two looks. The guard reads each query in the dialect of its source and refuses whatever is not one
SELECT. Then the source itself is asked which columns the query gives, and these are held against
the definition, just as the export will do it. A source that does not answer fails nobody: it is
said as a warning, and the export will look again.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.graphs.errors import ColumnsDiffer
from penstock.graphs.mappings.columns import Problem, fit
from penstock.graphs.mappings.rules import broken
from penstock.kit import logging
from penstock.kit.errors import PenstockError, RateLimited
from penstock.sources.errors import SourceError, SourceQueryError, SourceUnavailable
from penstock.sources.registry import DRIVERS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.graphs.mappings.definition import Definitions, Query
    from penstock.graphs.snapshots.payloads import Entity
    from penstock.guard.checker_process import SqlChecker
    from penstock.sources.contract import Source
    from penstock.sources.repository import DataSource, DataSources

AT_ONCE = 4
_SQL = "sql"
log = logging.get(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Problems refuse a mapping; warnings do not."""

    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()

    def __add__(self, other: Verdict) -> Verdict:
        return Verdict(
            problems=self.problems + other.problems, warnings=self.warnings + other.warnings
        )


class QueryCheck:
    def __init__(self, sources: DataSources, checker: SqlChecker) -> None:
        self._sources = sources
        self._checker = checker

    async def judge(
        self, definitions: Definitions, source: DataSource, *, by: str, role: str | None = None
    ) -> Verdict:
        """The rules first: queries of definitions that break them are not looked at."""
        if problems := tuple(broken(definitions)):
            return Verdict(problems=problems)
        queries = definitions.queries()
        verdict, allowed = await self._guarded(queries, DRIVERS[source.type].dialect)
        return verdict + await self._asked(queries, allowed, source, by, role)

    async def _guarded(
        self, queries: Sequence[Query], dialect: str
    ) -> tuple[Verdict, Mapping[Entity, str]]:
        """What the guard refuses, and what it lets through as it may run."""
        problems: list[Problem] = []
        allowed: dict[Entity, str] = {}
        verdicts = await self._checker.check([query.sql for query in queries], dialect)
        for query, verdict in zip(queries, verdicts, strict=True):
            if isinstance(verdict, str):
                allowed[query.entity] = verdict
            else:
                problems.append(_refused(query.entity, verdict))
        return Verdict(problems=tuple(problems)), allowed

    async def _asked(
        self,
        queries: Sequence[Query],
        allowed: Mapping[Entity, str],
        source: DataSource,
        by: str,
        role: str | None,
    ) -> Verdict:
        sought = [query for query in queries if query.entity in allowed]
        try:
            return await self._sources.ask(
                source.data_source_id,
                lambda opened: _described(opened, sought, allowed),
                by=by,
                role=role,
            )
        except RateLimited:
            raise
        except PenstockError as e:
            return Verdict(warnings=(_silent(f"Data source {source.name}", e),))
        except Exception as e:  # a driver that stumbles is no reason to refuse a mapping
            log.exception("source_not_asked", data_source=source.name)
            return Verdict(
                warnings=(_silent(f"Data source {source.name}", SourceError(type(e).__name__)),)
            )


async def _described(
    source: Source, queries: Sequence[Query], allowed: Mapping[Entity, str]
) -> Verdict:
    """A few at a time; once the source is found gone, the rest are not asked."""
    turns = asyncio.Semaphore(AT_ONCE)
    away: list[Problem] = []

    async def one(query: Query) -> Verdict:
        async with turns:
            try:
                return Verdict() if away else await _compared(source, query, allowed[query.entity])
            except SourceUnavailable as e:
                away.append(_silent(str(query.entity), e))
                return Verdict()

    found = await asyncio.gather(*(one(query) for query in queries))
    return sum(found, Verdict(warnings=tuple(away[:1])))


async def _compared(source: Source, query: Query, sql: str) -> Verdict:
    try:
        fit(query.entity, query.columns, await source.schema(sql))
    except ColumnsDiffer as e:
        return Verdict(problems=tuple(Problem(**each) for each in e.details["problems"]))
    except SourceQueryError as e:
        return Verdict(problems=(_refused(query.entity, e),))
    except SourceUnavailable:
        raise
    except PenstockError as e:
        return Verdict(warnings=(_silent(str(query.entity), e),))
    return Verdict()


def _refused(entity: Entity, error: PenstockError) -> Problem:
    place = f" (line {error.details['line']})" if "line" in error.details else ""
    return Problem(
        entity=str(entity),
        column=_SQL,
        problem=f"{error.message}{place}",
        suggestion=error.hint or "Correct the query.",
    )


def _silent(entity: str, error: PenstockError) -> Problem:
    return Problem(
        entity=entity,
        column=_SQL,
        problem=f"The source could not be asked: {error.message}",
        suggestion=error.hint or "Validate the mapping again when the source answers.",
    )
