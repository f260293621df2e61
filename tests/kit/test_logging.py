"""Nobody reads a secret in a log, in either form."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Literal

import pytest
import structlog

from penstock.kit import logging

if TYPE_CHECKING:
    from collections.abc import Iterator

MARK = "canary-hunter2"


@pytest.fixture
def log_settings() -> Iterator[None]:
    before = structlog.get_config()
    yield
    structlog.configure(**before)


@pytest.mark.parametrize("form", ["json", "text"])
def test_a_secret_is_in_no_log_line_and_no_trace(
    log_settings: None, form: Literal["json", "text"]
) -> None:
    written = io.StringIO()
    logging.configure(level="DEBUG", form=form, stream=written)
    log = logging.get("penstock.kit.test")
    log.debug(
        "opened",
        password=MARK,
        inner={"api_key": MARK},
        url=f"postgresql://ann:{MARK}@db/x",
        said=[f"Bearer {MARK}"],
    )
    conninfo = f"dbname=x password='{MARK}'"
    try:
        raise OSError(f"cannot reach postgresql://ann:{MARK}@db/x") if conninfo else AssertionError
    except OSError:
        log.exception("failed")
    assert MARK not in written.getvalue()
    assert "cannot reach postgresql://ann:[redacted]@db/x" in written.getvalue()
    assert "test_logging.py" in written.getvalue()


@pytest.mark.parametrize("scheme", ["nats", "tls", "NATS"])
def test_a_token_that_stands_where_a_user_does_is_hidden(scheme: str) -> None:
    assert logging.scrub(f"{scheme}://s3cret@host:4222") == f"{scheme}://[redacted]@host:4222"
    assert logging.scrub("postgresql://ann@db/x") == "postgresql://ann@db/x"
