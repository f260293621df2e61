"""Kinds of job: the policy that the kernel applies, and the declaration that adds a handler."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from penstock.kit.backoff import Backoff
from penstock.kit.errors import InvalidInput
from penstock.kit.ids import check_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from penstock.jobs.handler import Handler

Services = TypeVar("Services")


@dataclass(frozen=True, slots=True, kw_only=True)
class KindPolicy:
    """Lease, heartbeat and timeout in seconds; `on_sigterm` says whether an interrupted attempt
    counts as a failure."""

    name: str
    queue: str = "default"
    priority: int = 5
    lease: int = 300
    heartbeat: int = 30
    timeout: int = 3600
    max_attempts: int = 3
    on_sigterm: Literal["release", "fail"] = "release"
    backoff: Backoff = field(default_factory=Backoff)
    cleanup_kind: str | None = None
    """Enqueued with the state of a parked job that is cancelled or fails without its worker (a
    query to be stopped)."""

    def __post_init__(self) -> None:
        check_name(self.name, "Kind")
        if not 0 < self.heartbeat < self.lease:
            raise InvalidInput(f"Kind {self.name}: the heartbeat must be shorter than the lease.")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobKind(Generic[Services]):
    """A kind of job, declared once next to its handler.

    The control plane reads `policy`; a worker calls `handler` with the services of the workload.
    Handlers import drivers and engines, so a declaration imports its handler inside that call.
    """

    policy: KindPolicy
    handler: Callable[[Services], Handler]


class Kinds:
    """The kinds that this deployment knows; enqueuing any other is refused."""

    def __init__(self, policies: Iterable[KindPolicy] = ()) -> None:
        self._policies: dict[str, KindPolicy] = {}
        for policy in policies:
            self.add(policy)

    def add(self, policy: KindPolicy) -> None:
        if policy.name in self._policies:
            raise InvalidInput(f"Kind {policy.name} is there already.")
        self._policies[policy.name] = policy

    def __getitem__(self, name: str) -> KindPolicy:
        try:
            return self._policies[name]
        except KeyError:
            names = ", ".join(sorted(self._policies)) or "none"
            raise InvalidInput(
                f"There is no job kind {name[:80]!r}.", hint=f"Known kinds: {names}."
            ) from None

    def get(self, name: str) -> KindPolicy | None:
        return self._policies.get(name)

    def __contains__(self, name: str) -> bool:
        return name in self._policies

    def __iter__(self) -> Iterator[KindPolicy]:
        return iter(self._policies.values())
