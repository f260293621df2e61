"""Checks the queries of a mapping when it is written, so that errors do not wait for the export.

There are two checks. The SQL guard parses each query in the dialect of its source and refuses
everything except a single SELECT. Then the source is asked for the columns of the query, which are
compared with the definition as the export will do it. A source that does not answer only causes a
warning; the export checks again.
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

MAX_CONCURRENT = 4
_SQL = "sql"
log = logging.get(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A mapping with problems is refused; warnings are only reported."""

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
        """Check the rules first; queries are checked only if the definitions are valid."""
        if problems := tuple(broken(definitions)):
            return Verdict(problems=problems)
        queries = definitions.queries()
        verdict, allowed = await self._check_sql(queries, DRIVERS[source.type].dialect, by)
        return verdict + await self._check_columns(queries, allowed, source, by, role)

    async def _check_sql(
        self, queries: Sequence[Query], dialect: str, by: str
    ) -> tuple[Verdict, Mapping[Entity, str]]:
        """What the guard refuses, and the queries that it allows, as they may run."""
        problems: list[Problem] = []
        allowed: dict[Entity, str] = {}
        verdicts = await self._checker.check([query.sql for query in queries], dialect, username=by)
        for query, verdict in zip(queries, verdicts, strict=True):
            if isinstance(verdict, str):
                allowed[query.entity] = verdict
            else:
                problems.append(_refused(query.entity, verdict))
        return Verdict(problems=tuple(problems)), allowed

    async def _check_columns(
        self,
        queries: Sequence[Query],
        allowed: Mapping[Entity, str],
        source: DataSource,
        by: str,
        role: str | None,
    ) -> Verdict:
        allowed_queries = [query for query in queries if query.entity in allowed]
        try:
            return await self._sources.ask(
                source.data_source_id,
                lambda opened: _compare_all(opened, allowed_queries, allowed),
                by=by,
                role=role,
            )
        except RateLimited:
            raise
        except PenstockError as e:
            return Verdict(warnings=(_not_checked(f"Data source {source.name}", e),))
        except Exception as e:  # a driver error must not prevent saving a mapping
            log.exception("source_not_asked", data_source=source.name)
            return Verdict(
                warnings=(
                    _not_checked(f"Data source {source.name}", SourceError(type(e).__name__)),
                )
            )


async def _compare_all(
    source: Source, queries: Sequence[Query], allowed: Mapping[Entity, str]
) -> Verdict:
    """A few at a time; once the source is unreachable, the rest are skipped."""
    slots = asyncio.Semaphore(MAX_CONCURRENT)
    unreachable: list[Problem] = []

    async def one(query: Query) -> Verdict:
        async with slots:
            try:
                return (
                    Verdict()
                    if unreachable
                    else await _compare(source, query, allowed[query.entity])
                )
            except SourceUnavailable as e:
                unreachable.append(_not_checked(str(query.entity), e))
                return Verdict()

    verdicts = await asyncio.gather(*(one(query) for query in queries))
    return sum(verdicts, Verdict(warnings=tuple(unreachable[:1])))


async def _compare(source: Source, query: Query, sql: str) -> Verdict:
    try:
        fit(query.entity, query.columns, await source.schema(sql))
    except ColumnsDiffer as e:
        return Verdict(problems=tuple(Problem(**problem) for problem in e.details["problems"]))
    except SourceQueryError as e:
        return Verdict(problems=(_refused(query.entity, e),))
    except SourceUnavailable:
        raise
    except PenstockError as e:
        return Verdict(warnings=(_not_checked(str(query.entity), e),))
    return Verdict()


def _refused(entity: Entity, error: PenstockError) -> Problem:
    place = f" (line {error.details['line']})" if "line" in error.details else ""
    return Problem(
        entity=str(entity),
        column=_SQL,
        problem=f"{error.message}{place}",
        suggestion=error.hint or "Correct the query.",
    )


def _not_checked(entity: str, error: PenstockError) -> Problem:
    return Problem(
        entity=entity,
        column=_SQL,
        problem=f"The source could not be queried: {error.message}",
        suggestion=error.hint or "Validate the mapping again when the source answers.",
    )
