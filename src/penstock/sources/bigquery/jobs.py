"""BigQuery's REST API: describe, run and cancel queries, list tables.

The client chooses the job id, so that a retry after a lost response finds the job that already
runs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote
from uuid import uuid4

from penstock.kit import logging
from penstock.kit.errors import PenstockError
from penstock.sources.bigquery.failure import http_failure, job_failure
from penstock.sources.cancellations import Cancellations
from penstock.sources.errors import SourceQueryError, SourceUnavailable
from penstock.sources.rest import Rest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from penstock.kit.outbound import Outbound
    from penstock.sources.bigquery.config import Config
    from penstock.sources.bigquery.credentials import Credentials
    from penstock.sources.bigquery.types import Fields
    from penstock.sources.rest import Document

PRODUCT = "BigQuery"
_POLL_MILLISECONDS = 10_000
_CANCEL_SECONDS = 5.0

log = logging.get("sources.bigquery")


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """The table with a job's result; it expires after a day."""

    project: str
    dataset: str
    table: str

    @property
    def path(self) -> str:
        return f"projects/{self.project}/datasets/{self.dataset}/tables/{self.table}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A query's columns and the location of its job, which later requests for the job must name."""

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
            retry_seconds=config.retry_seconds,
        )
        self._cancellations = Cancellations()

    async def close(self) -> None:
        await self._cancellations.close()
        await self._rest.close()

    async def describe(self, sql: str) -> Described:
        """Describe a query by a dry run, which is free; anything but one SELECT is rejected."""
        reference = self._reference(None, self._config.location)
        job = {"configuration": {"dryRun": True, **self._query(sql)}, "jobReference": reference}
        answer = await self._ask("POST", self._path("jobs"), body=job)
        statistics = answer["statistics"]["query"]
        if statistics.get("statementType") != "SELECT":
            raise SourceQueryError(
                f"{statistics.get('statementType', 'This')} is not a query.",
                hint="Write one SELECT.",
            )
        location = answer.get("jobReference", {}).get("location", self._config.location)
        return Described(fields=statistics["schema"].get("fields", ()), location=location)

    async def run(self, sql: str, location: str | None, trace: str = "") -> Destination:
        """Run a query to completion; a cancellation of this call cancels the job."""
        job_id = f"penstock_{uuid4().hex}"
        configuration = {**self._query(sql), "labels": {"penstock": _label(trace)}}
        job = {"configuration": configuration, "jobReference": self._reference(job_id, location)}
        try:
            await self._insert(job)
            return await self._finished(job_id, location)
        except BaseException as e:
            # Any other PenstockError means that the job has already ended.
            if isinstance(e, SourceUnavailable) or not isinstance(e, PenstockError):
                await self._cancel(job_id, location)
            raise

    async def table(self, project: str, dataset: str, table: str) -> Document:
        return await self._ask(
            "GET", f"{_project(project)}/datasets/{quote(dataset)}/tables/{quote(table)}"
        )

    async def datasets(self) -> list[Document]:
        return [item async for item in self._pages(self._path("datasets"), "datasets")]

    async def tables(self, project: str, dataset: str) -> list[Document]:
        path = f"{_project(project)}/datasets/{quote(dataset)}/tables"
        return [item async for item in self._pages(path, "tables")]

    async def _insert(self, job: Mapping[str, object]) -> None:
        """Insert the job; 409 means that an earlier try, whose response was lost, did it."""
        answer = await self._rest.send(
            "POST", self._path("jobs"), body=job, headers=await self._credentials.headers()
        )
        if answer.status not in (200, 409):
            raise http_failure(answer)

    async def _finished(self, job_id: str, location: str | None) -> Destination:
        where = {"location": location} if location else {}
        poll = {
            "maxResults": "0",
            "timeoutMs": str(min(_POLL_MILLISECONDS, self._longest_poll)),
            **where,
        }
        while not (await self._ask("GET", self._path("queries", job_id), params=poll))[
            "jobComplete"
        ]:
            pass
        job = await self._ask("GET", self._path("jobs", job_id), params=where)
        if error := job["status"].get("errorResult"):
            raise job_failure(error)
        destination = job["configuration"]["query"]["destinationTable"]
        return Destination(
            project=destination["projectId"],
            dataset=destination["datasetId"],
            table=destination["tableId"],
        )

    async def _cancel(self, job_id: str, location: str | None) -> None:
        await self._cancellations.finish(self._cancel_once(job_id, location))

    async def _cancel_once(self, job_id: str, location: str | None) -> None:
        path = self._path("jobs", job_id, "cancel") + (
            f"?location={quote(location)}" if location else ""
        )
        try:
            headers = await self._credentials.headers()
        except PenstockError as e:
            log.warning("bigquery_cancel_failed", job=job_id, error=e.message)
            return
        status = await self._rest.once("POST", path, headers=headers, seconds=_CANCEL_SECONDS)
        log.info("bigquery_job_cancelled", job=job_id, status=status)

    async def _pages(self, path: str, name: str) -> AsyncIterator[Document]:
        params = {"maxResults": "1000"}
        while True:
            page = await self._ask("GET", path, params=params)
            for item in page.get(name, ()):
                yield item
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
    ) -> Document:
        headers = await self._credentials.headers()
        answer = await self._rest.send(method, path, body=body, params=params, headers=headers)
        if answer.status != 200:
            raise http_failure(answer)
        return answer.json(PRODUCT)

    @property
    def _longest_poll(self) -> int:
        return int(self._config.request_timeout * 500)

    def _query(self, sql: str) -> dict[str, object]:
        query: dict[str, object] = {"query": sql, "useLegacySql": False}
        if self._config.dataset is not None:
            query["defaultDataset"] = {
                "projectId": self._config.project,
                "datasetId": self._config.dataset,
            }
        if self._config.maximum_bytes_billed is not None:
            query["maximumBytesBilled"] = str(self._config.maximum_bytes_billed)
        return {"query": query}

    def _reference(self, job_id: str | None, location: str | None) -> dict[str, str]:
        reference = {"projectId": self._config.project, "jobId": job_id, "location": location}
        return {name: value for name, value in reference.items() if value is not None}

    def _path(self, *parts: str) -> str:
        return "/".join([_project(self._config.project), *map(quote, parts)])


def _project(name: str) -> str:
    return f"/bigquery/v2/projects/{quote(name)}"


def _label(trace: str) -> str:
    return re.sub(r"[^a-z0-9_-]", "-", trace.lower())[:63]
