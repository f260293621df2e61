"""How long a thing lives: `ttl` from when it is set, `inactivity_timeout` from when it was last
used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.graphs.duration import parse

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import timedelta

    from penstock.graphs.runtime_config import LifecycleRule


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetime:
    ttl: timedelta | None = None
    inactivity_timeout: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LifetimeChange:
    """What is in `told` is set, None clears it; the rest stays as it is."""

    told: Mapping[str, timedelta | None]

    def values(self) -> dict[str, Any]:
        return {
            "set_ttl": "ttl" in self.told,
            "ttl": self.told.get("ttl"),
            "set_inactivity": "inactivity_timeout" in self.told,
            "inactivity_timeout": self.told.get("inactivity_timeout"),
        }


def lifetime(rule: LifecycleRule, *, ttl: str | None, inactivity_timeout: str | None) -> Lifetime:
    """Of something new: what was asked for, within the rule, and the rule's own for what was not."""
    return Lifetime(
        ttl=_span(rule, "ttl", ttl) or rule.default_ttl,
        inactivity_timeout=_span(rule, "inactivity_timeout", inactivity_timeout)
        or rule.default_inactivity,
    )


def lifetime_change(rule: LifecycleRule, told: Mapping[str, str | None]) -> LifetimeChange:
    """`told` has only what the caller said; None clears."""
    return LifetimeChange(told={name: _span(rule, name, text) for name, text in told.items()})


def _span(rule: LifecycleRule, name: str, text: str | None) -> timedelta | None:
    return None if text is None else parse(text, field=name, longest=rule.max_ttl)
