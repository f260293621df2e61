"""A control plane of the storm: the real one, which knows the storm's kinds as well."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from penstock.api.serving import server
from penstock.jobs.kinds import Kinds
from penstock.wiring import control_plane
from penstock.wiring.migrations import MIGRATION_PACKAGES
from tests.chaos.kinds import KINDS

if TYPE_CHECKING:
    from penstock.wiring.settings import Settings


def run(settings: Settings) -> int:
    plane = partial(control_plane.build_control_plane, settings, kinds=Kinds(KINDS))
    return server.serve(settings, plane, MIGRATION_PACKAGES)
