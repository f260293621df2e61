"""Translate BigQuery's errors, from its REST API and its Storage Read API."""

# mypy: disable-error-code="import-untyped"
from __future__ import annotations

from typing import TYPE_CHECKING

import grpc

from penstock.sources.errors import (
    SnapshotLost,
    SourceError,
    SourceQueryError,
    SourceRefused,
    SourceUnavailable,
)
from penstock.sources.rest import vendor_error

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.kit.errors import PenstockError
    from penstock.sources.rest import Answer

_BY_REASON: Mapping[str, type[PenstockError]] = {
    "accessDenied": SourceRefused,
    "backendError": SourceUnavailable,
    "internalError": SourceUnavailable,
    "invalid": SourceQueryError,
    "invalidQuery": SourceQueryError,
    "jobBackendError": SourceUnavailable,
    "jobRateLimitExceeded": SourceUnavailable,
    "notFound": SourceQueryError,
    "quotaExceeded": SourceUnavailable,
    "rateLimitExceeded": SourceUnavailable,
}
_BY_STATUS: Mapping[int, type[PenstockError]] = {
    400: SourceQueryError,
    401: SourceRefused,
    403: SourceRefused,
    404: SourceQueryError,
    500: SourceUnavailable,
}
_BY_CODE: Mapping[grpc.StatusCode, type[PenstockError]] = {
    grpc.StatusCode.FAILED_PRECONDITION: SnapshotLost,
    grpc.StatusCode.NOT_FOUND: SnapshotLost,
    grpc.StatusCode.PERMISSION_DENIED: SourceRefused,
    grpc.StatusCode.UNAUTHENTICATED: SourceRefused,
    grpc.StatusCode.ABORTED: SourceUnavailable,
    grpc.StatusCode.DEADLINE_EXCEEDED: SourceUnavailable,
    grpc.StatusCode.INTERNAL: SourceUnavailable,
    grpc.StatusCode.RESOURCE_EXHAUSTED: SourceUnavailable,
    grpc.StatusCode.UNAVAILABLE: SourceUnavailable,
    grpc.StatusCode.UNKNOWN: SourceUnavailable,
}


def http_failure(answer: Answer) -> PenstockError:
    error = vendor_error(answer.body, text="message")
    reason = str((error.get("errors") or [{}])[0].get("reason", ""))
    kind = _BY_REASON.get(reason) or _BY_STATUS.get(answer.status, SourceError)
    message = str(error.get("message") or "no reason given")[:500]
    return kind(
        f"BigQuery: {message}", error_name=reason or f"HTTP_{answer.status}", status=answer.status
    )


def job_failure(error: Mapping[str, object]) -> PenstockError:
    """The error for a job's `errorResult`."""
    reason = str(error.get("reason", ""))
    kind = _BY_REASON.get(reason, SourceError)
    return kind(
        f"BigQuery: {str(error.get('message', 'no reason given'))[:500]}", error_name=reason
    )


def rpc_failure(error: grpc.RpcError) -> PenstockError:
    code = error.code()
    kind = _BY_CODE.get(code, SourceError)
    return kind(f"BigQuery: {str(error.details() or code.name)[:500]}", error_name=code.name)


def is_transient(error: grpc.RpcError) -> bool:
    """Whether reading the stream can be resumed."""
    return _BY_CODE.get(error.code()) is SourceUnavailable
