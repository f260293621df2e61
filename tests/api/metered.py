"""Measures the event loop time of requests in CPU seconds, independent of machine load."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from starlette.types import Receive, Scope, Send


@dataclass(slots=True)
class LoopMeter:
    """An ASGI application that records how long each request blocked the loop."""

    app: Callable[[Scope, Receive, Send], Awaitable[None]]
    longest: float = 0.0
    request: str = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = f"{scope['method']} {scope['path']}"
        await _Steps(self.app(scope, receive, send), self, name)

    def note(self, seconds: float, name: str) -> None:
        if seconds > self.longest:
            self.longest, self.request = seconds, name


class _Steps:
    """Runs a coroutine step by step, measuring each step."""

    def __init__(self, work: Awaitable[None], meter: LoopMeter, name: str) -> None:
        self._work = work
        self._meter = meter
        self._name = name

    def __await__(self) -> Generator[Any, Any, None]:
        steps = self._work.__await__()
        error: BaseException | None = None
        while True:
            began = time.thread_time()
            try:
                waited_for = steps.send(None) if error is None else steps.throw(error)
            except StopIteration:
                return
            finally:
                self._meter.note(time.thread_time() - began, self._name)
            try:
                error = None
                yield waited_for
            except BaseException as e:
                error = e
