"""Audit log of user statements: each is logged with its author and digest, and counted.

The text is not logged, because it may contain confidential values. The digest finds the events of a
known text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import orjson
from fastapi import Depends, FastAPI, Request
from prometheus_client import Counter

from penstock.kit import logging
from penstock.kit.statement_digest import statement_digest

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from penstock.jobs.model import Json

log = logging.get(__name__)
Surface: TypeAlias = Literal["cypher", "job", "mapping", "recipe"]


class StatementLog:
    def __init__(self, registry: CollectorRegistry) -> None:
        self._statements = Counter(
            "penstock_statements",
            "Statements that users sent: in mappings, recipes and jobs, and to graph servers.",
            ["surface"],
            registry=registry,
        )

    def note(self, surface: Surface, author: str | None, statement: str, **facts: object) -> None:
        """`facts` name where it runs, such as a job or a data source."""
        self.count(surface)
        log.info(
            "statement",
            surface=surface,
            author=author,
            statement_sha256=statement_digest(statement),
            **facts,
        )

    def note_document(
        self, surface: Surface, author: str | None, document: Json, **facts: object
    ) -> None:
        """Note a document that is compiled to statements, such as a recipe, as canonical JSON."""
        text = orjson.dumps(document, option=orjson.OPT_SORT_KEYS, default=str).decode()
        self.note(surface, author, text, **facts)

    def count(self, surface: Surface) -> None:
        """Only count a statement; the graph server that parses it logs it."""
        self._statements.labels(surface).inc()


def of_app(app: FastAPI) -> StatementLog:
    statements: StatementLog = app.state.statements
    return statements


async def of(request: Request) -> StatementLog:
    return of_app(request.app)


HasStatementLog = Annotated[StatementLog, Depends(of)]
