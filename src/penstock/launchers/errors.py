"""Errors of the launchers package.

Unavailable
├── LaunchFailed  LAUNCH_FAILED
└── NoAddress     UNAVAILABLE
"""

from __future__ import annotations

from penstock.kit.errors import Unavailable


class LaunchFailed(Unavailable):
    """The process or pod could not be created; the message has the details."""

    code = "LAUNCH_FAILED"


class NoAddress(Unavailable):
    """The graph server has no address yet, or none any more."""
