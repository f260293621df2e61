"""What goes wrong with the test cluster."""

from __future__ import annotations


class ClusterFailed(Exception):
    """A part of the cluster did not come up, or an expectation was not met; with the reason."""
