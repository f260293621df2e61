"""BigQuery's REST half: what a query would give, running it, ending it, and what there is.

We name a job ourselves, so that sending it again after a lost answer finds the one that already
runs.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import uuid4

from penstock.kit import logging
from penstock.kit.errors import PenstockError
from penstock.sources.bigquery.failure import http_failure, job_failure
from penstock.sources.errors import SourceQueryError, SourceUnavailable
from penstock.sources.rest import Rest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from penstock.kit.outbound import Outbound
    from penstock.sources.bigquery.config import Config
    from penstock.sources.bigquery.credentials import Credentials
    from penstock.sources.bigquery.types import Fields

PRODUCT = "BigQuery"
_LOOK_MILLISECONDS = 10_000
_FAREWELL_SECONDS = 5.0

log = logging.get("sources.bigquery")


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """The table that holds a job's result, for a day."""

    project: str
    dataset: str
    table: str

    @property
    def path(self) -> str:
        return f"projects/{self.project}/datasets/{self.dataset}/tables/{self.table}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A query's columns, and where its job will run: only there can the job be asked after."""

    fields: Fields
    location: str | None


class Jobs:
    def __init__(self, config: Config, credentials: Credentials, outbound: Outbound) -> None:
        self._config = config
        self._credentials = credentials
        self._rest = Rest(
            PRODUCT,
            config.rest_endpoint.rstrip("/"),
            outbound,
            timeout=config.request_timeout,
            patience=config.retry_seconds,
        )
        self._farewells: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        await asyncio.gather(*self._farewells)
        await self._rest.close()

    async def describe(self, sql: str) -> Described:
        """By a dry run, which costs nothing; whatever is not one SELECT is refused."""
        reference = self._reference(None, self._config.location)
        job = {"configuration": {"dryRun": True, **self._query(sql)}, "jobReference": reference}
        answer = await self._ask("POST", self._path("jobs"), body=job)
        found = answer["statistics"]["query"]
        if found.get("statementType") != "SELECT":
            raise SourceQueryError(
                f"{found.get('statementType', 'This')} is not a query.", hint="Write one SELECT."
            )
        location = answer.get("jobReference", {}).get("location", self._config.location)
        return Described(fields=found["schema"].get("fields", ()), location=location)

    async def run(self, sql: str, location: str | None, trace: str = "") -> Destination:
        """Run a query to its end; whoever leaves before that cancels it at BigQuery."""
        job_id = f"penstock_{uuid4().hex}"
        configuration = {**self._query(sql), "labels": {"penstock": _label(trace)}}
        job = {"configuration": configuration, "jobReference": self._reference(job_id, location)}
        try:
            await self._insert(job)
            return await self._finished(job_id, location)
        except BaseException as e:
            if isinstance(e, SourceUnavailable) or not isinstance(
                e, PenstockError
            ):  # else it is over already
                await self._cancel(job_id, location)
            raise

    async def table(self, project: str, dataset: str, table: str) -> dict[str, Any]:
        return await self._ask(
            "GET", f"{_project(project)}/datasets/{quote(dataset)}/tables/{quote(table)}"
        )

    async def datasets(self) -> list[dict[str, Any]]:
        return [each async for each in self._pages(self._path("datasets"), "datasets")]

    async def tables(self, project: str, dataset: str) -> list[dict[str, Any]]:
        path = f"{_project(project)}/datasets/{quote(dataset)}/tables"
        return [each async for each in self._pages(path, "tables")]

    async def _insert(self, job: dict[str, Any]) -> None:
        """A job that is there already is ours, from a try whose answer was lost."""
        answer = await self._rest.send(
            "POST", self._path("jobs"), body=job, headers=await self._credentials.headers()
        )
        if answer.status not in (200, 409):
            raise http_failure(answer)

    async def _finished(self, job_id: str, location: str | None) -> Destination:
        where = {"location": location} if location else {}
        look = {
            "maxResults": "0",
            "timeoutMs": str(min(_LOOK_MILLISECONDS, self._longest_look)),
            **where,
        }
        while not (await self._ask("GET", self._path("queries", job_id), params=look))[
            "jobComplete"
        ]:
            pass
        job = await self._ask("GET", self._path("jobs", job_id), params=where)
        if error := job["status"].get("errorResult"):
            raise job_failure(error)
        found = job["configuration"]["query"]["destinationTable"]
        return Destination(
            project=found["projectId"], dataset=found["datasetId"], table=found["tableId"]
        )

    async def _cancel(self, job_id: str, location: str | None) -> None:
        task = asyncio.create_task(self._cancel_once(job_id, location))
        self._farewells.add(task)
        task.add_done_callback(self._farewells.discard)
        await asyncio.shield(task)

    async def _cancel_once(self, job_id: str, location: str | None) -> None:
        path = self._path("jobs", job_id, "cancel") + (
            f"?location={quote(location)}" if location else ""
        )
        try:
            headers = await self._credentials.headers()
        except PenstockError as e:
            log.warning("bigquery_cancel_failed", job=job_id, error=e.message)
            return
        status = await self._rest.once("POST", path, headers=headers, seconds=_FAREWELL_SECONDS)
        log.info("bigquery_job_cancelled", job=job_id, status=status)

    async def _pages(self, path: str, name: str) -> AsyncIterator[dict[str, Any]]:
        params = {"maxResults": "1000"}
        while True:
            page = await self._ask("GET", path, params=params)
            for each in page.get(name, ()):
                yield each
            if "nextPageToken" not in page:
                return
            params["pageToken"] = page["nextPageToken"]

    async def _ask(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        params: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        headers = await self._credentials.headers()
        answer = await self._rest.send(method, path, body=body, params=params, headers=headers)
        if answer.status != 200:
            raise http_failure(answer)
        return answer.json(PRODUCT)

    @property
    def _longest_look(self) -> int:
        return int(self._config.request_timeout * 500)

    def _query(self, sql: str) -> dict[str, Any]:
        query: dict[str, Any] = {"query": sql, "useLegacySql": False}
        if self._config.dataset is not None:
            query["defaultDataset"] = {
                "projectId": self._config.project,
                "datasetId": self._config.dataset,
            }
        if self._config.maximum_bytes_billed is not None:
            query["maximumBytesBilled"] = str(self._config.maximum_bytes_billed)
        return {"query": query}

    def _reference(self, job_id: str | None, location: str | None) -> dict[str, str]:
        found = {"projectId": self._config.project, "jobId": job_id, "location": location}
        return {name: value for name, value in found.items() if value is not None}

    def _path(self, *parts: str) -> str:
        return "/".join([_project(self._config.project), *map(quote, parts)])


def _project(name: str) -> str:
    return f"/bigquery/v2/projects/{quote(name)}"


def _label(trace: str) -> str:
    return re.sub(r"[^a-z0-9_-]", "-", trace.lower())[:63]
