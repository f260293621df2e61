"""What a launcher says no with.

Unavailable
└── LaunchFailed  LAUNCH_FAILED
"""

from __future__ import annotations

from penstock.kit.errors import Unavailable


class LaunchFailed(Unavailable):
    """The process or pod could not be made; what was tried is in the message."""

    code = "LAUNCH_FAILED"
