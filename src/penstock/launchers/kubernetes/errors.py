"""What an API server refuses, in plain words.

KubernetesError     the server could not be asked, or refused
├── AlreadyExists   409 of a create
├── Missing         404
├── Expired         410: this version is gone, list again
└── Unreachable     no answer, or 429 and 5xx: try again
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.launchers.errors import LaunchFailed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_USER = re.compile(r'User "([^"]*)"')
_ACCOUNT = re.compile(r"system:serviceaccount:([^:]+):(.+)")
_MOST_SKEW = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request, in the words of Kubernetes' own access rules."""

    verb: str
    resource: str
    namespace: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{f' {self.name}' if self.name else ''}"


class KubernetesError(LaunchFailed):
    """The message is for whoever looks at the instance, the hint for the operator."""


class AlreadyExists(KubernetesError):
    pass


class Missing(KubernetesError):
    pass


class Expired(KubernetesError):
    pass


class Unreachable(KubernetesError):
    """`after` is how long the server wants us to wait, in seconds."""

    after: float = 0.0


def refusal(
    call: Call, status: int, answer: Mapping[str, Any], *, skew: float, user: str
) -> KubernetesError:
    """`skew` is how far our clock is ahead of the server's, in seconds."""
    message = str(answer.get("message") or f"status {status}")
    match status:
        case 401:
            return _unauthorized(user, skew)
        case 403:
            return _forbidden(call, message, user)
        case 404 if answer.get("details", {}).get("kind") == "namespaces":
            return _no_namespace(call)
        case 404:
            return Missing(f"Kubernetes has no {call.resource} {call.name}: {message}")
        case 409 if answer.get("reason") == "AlreadyExists":
            return AlreadyExists(message)
        case 410:
            return Expired(message)
        case 429 | 500 | 502 | 503 | 504:
            return Unreachable(f"The Kubernetes API server answered {status}: {message}")
    return KubernetesError(f"Kubernetes refused to {call}: {message}")


def unreachable(url: str, error: Exception, *, skew: float) -> KubernetesError:
    text = str(error)
    if "CERTIFICATE_VERIFY_FAILED" in text:
        hint = "Check the CA of the kubeconfig or the service account."
        if "expired" in text or "not yet valid" in text:
            hint = f"Check the clock of this machine{_ahead(skew)} and the server's certificate."
        return Unreachable(
            f"The certificate of the Kubernetes API server at {url} is not trusted ({text}).",
            hint=hint,
        )
    return Unreachable(
        f"The Kubernetes API server at {url} is unreachable ({type(error).__name__})."
    )


def _unauthorized(user: str, skew: float) -> KubernetesError:
    return KubernetesError(
        f"The Kubernetes API server does not accept the credentials of {user}:"
        f" they are expired, revoked or of another cluster.",
        hint=f"Renew the token or the kubeconfig{_ahead(skew)}.",
    )


def _ahead(skew: float) -> str:
    if abs(skew) < _MOST_SKEW:
        return ""
    return (
        f"; the clock of this machine is {abs(skew):.0f} s"
        f" {'ahead of' if skew > 0 else 'behind'} the server's, which ends tokens early or late"
    )


def _forbidden(call: Call, message: str, user: str) -> KubernetesError:
    if "exceeded quota" in message:
        return KubernetesError(
            f"The quota of namespace {call.namespace} has no room for this graph server: {message}",
            hint="Terminate instances, choose less memory, or raise the ResourceQuota.",
        )
    if "is forbidden: User" not in message:
        # An admission rule, such as PodSecurity or a LimitRange.
        return KubernetesError(
            f"A rule of namespace {call.namespace} refused to {call}: {message}",
            hint="Change the rule, or PENSTOCK_KUBERNETES_POD_PATCH.",
        )
    match = _USER.search(message)
    name = match[1] if match else user
    account = _ACCOUNT.fullmatch(name)
    who = f"ServiceAccount {account[1]}/{account[2]}" if account else name
    return KubernetesError(
        f"{who} may not {call.verb} {call.resource} in namespace {call.namespace}.",
        hint=f"Give it a Role with the verb {call.verb} on the resource {call.resource}.",
    )


def _no_namespace(call: Call) -> KubernetesError:
    return KubernetesError(
        f"There is no namespace {call.namespace}.",
        hint="Create it, or set PENSTOCK_KUBERNETES_NAMESPACE.",
    )
