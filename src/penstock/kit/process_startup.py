"""Imports of a process that will run for long: without looking for garbage in what stays anyway."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def loading() -> Iterator[None]:
    """A quarter less time for the imports inside; the collector never looks at those modules later
    either."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
