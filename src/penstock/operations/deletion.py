"""How things are deleted when nobody stands before them: by the lifecycle, or many at once by an
admin.

The rules are those of a delete by hand; what something still needs is refused with
DependencyExists.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

End: TypeAlias = Callable[[int, str], Awaitable[object]]
"""What to end, and who wants it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionHooks:
    """`idle_instance` may put to sleep what `instance` ends, and `old_instance` ends whatever it is
    doing."""

    instance: End
    old_instance: End
    idle_instance: End
    snapshot: End
    mapping: End
