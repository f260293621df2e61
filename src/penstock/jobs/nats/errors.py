"""Errors of the transport: what NATS or its client said, in words that an operator can act on."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import contextmanager
from typing import TYPE_CHECKING

import nats.errors
import nats.js.errors

from penstock.kit.errors import PenstockError, Unavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable, Iterator

CREDENTIALS = (
    "Check PENSTOCK_NATS_USER and PENSTOCK_NATS_PASSWORD, PENSTOCK_NATS_TOKEN or"
    " PENSTOCK_NATS_CREDENTIALS."
)
TLS = (
    "Set PENSTOCK_NATS_TLS_CA to the authority of the server's certificate; a server that wants"
    " certificates of its clients needs PENSTOCK_NATS_TLS_CERT and PENSTOCK_NATS_TLS_KEY as well."
)
NOBODY = (
    nats.errors.NoRespondersError,
    nats.js.errors.NoStreamResponseError,
    nats.js.errors.ServiceUnavailableError,
)


class NatsUnavailable(Unavailable):
    """NATS cannot be used now; jobs are found by polling meanwhile."""

    def __str__(self) -> str:
        return f"{self.message} {self.hint}" if self.hint else self.message


class NatsMisconfigured(NatsUnavailable):
    """NATS answers, and something about it must be changed by hand."""


@contextmanager
def explained(doing: str) -> Iterator[None]:
    """Turn the errors of the client into ours.

    The client cancels what waits for an answer when its connection closes. That is no cancellation
    of our task, which must live on.
    """
    try:
        yield
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise NatsUnavailable(f"The connection to NATS was lost while {doing}.") from None
    except (nats.errors.Error, OSError, TimeoutError) as e:
        raise explain(e, doing) from e


def explain(error: Exception, doing: str) -> PenstockError:
    text = str(error).strip().removeprefix("nats: ").rstrip(".")
    low = text.lower()
    if isinstance(error, nats.errors.AuthorizationError) or "authorization" in low:
        return NatsMisconfigured("NATS refuses our credentials.", hint=CREDENTIALS)
    if "authentication" in low:
        return NatsMisconfigured(f"NATS refuses our credentials ({text}).", hint=CREDENTIALS)
    if isinstance(error, ssl.SSLError) or "tls" in low:
        return NatsMisconfigured(f"TLS with NATS failed: {text}.", hint=TLS)
    if "permissions violation" in low:
        return NatsMisconfigured(
            f"NATS does not let our user do this ({text}).",
            hint="docs/guides/operating.md lists the subjects that it needs.",
        )
    if isinstance(error, NOBODY) and not getattr(error, "description", None):
        return NatsUnavailable(
            f"Nobody answered while {doing}.",
            hint="The stream is missing, or the NATS server runs without JetStream (-js).",
        )
    if isinstance(error, nats.js.errors.APIError):
        return NatsUnavailable(
            f"JetStream refused while {doing}: {error.description or 'no reason given'}"
            f" (code {error.err_code or error.code})."
        )
    if isinstance(error, TimeoutError):
        return NatsUnavailable(f"NATS did not answer in time while {doing}.")
    return NatsUnavailable(f"NATS failed while {doing}: {text or type(error).__name__}.")


async def all_of(calls: Iterable[Awaitable[object]]) -> None:
    """Wait for all of them, also when one fails; then raise the first failure."""
    for result in await asyncio.gather(*calls, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result
