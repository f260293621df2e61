"""Deletion hooks, used by lifecycle rules and by bulk delete.

They apply the same rules as a manual delete: DependencyExists while a resource is in use.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

End: TypeAlias = Callable[[int, str], Awaitable[object]]
"""Deletes the resource with this id for this actor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionHooks:
    """`idle_instance` may suspend instead of terminating; `old_instance` forces the termination."""

    instance: End
    old_instance: End
    idle_instance: End
    snapshot: End
    mapping: End
