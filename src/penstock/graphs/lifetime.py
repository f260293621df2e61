"""Lifetimes: `ttl` counts from when it is set, `inactivity_timeout` from the last use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

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
    """Fields in `told` are set, None clears them; others stay unchanged."""

    told: Mapping[str, timedelta | None]

    def values(self) -> dict[str, object]:
        return {
            "set_ttl": "ttl" in self.told,
            "ttl": self.told.get("ttl"),
            "set_inactivity": "inactivity_timeout" in self.told,
            "inactivity_timeout": self.told.get("inactivity_timeout"),
        }


def lifetime(rule: LifecycleRule, *, ttl: str | None, inactivity_timeout: str | None) -> Lifetime:
    """The lifetime of a new resource: the requested values within the rule, else its defaults."""
    return Lifetime(
        ttl=_span(rule, "ttl", ttl) or rule.default_ttl,
        inactivity_timeout=_span(rule, "inactivity_timeout", inactivity_timeout)
        or rule.default_inactivity,
    )


def lifetime_change(rule: LifecycleRule, changes: Mapping[str, str | None]) -> LifetimeChange:
    """`changes` has only the fields that the caller sent; None clears."""
    return LifetimeChange(told={name: _span(rule, name, text) for name, text in changes.items()})


def _span(rule: LifecycleRule, name: str, text: str | None) -> timedelta | None:
    return None if text is None else parse(text, field=name, longest=rule.max_ttl)
