"""Settings of table maintenance: catalogs, engines and the planner."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from penstock.kit.config import Section


class MaintenanceSettings(Section):
    """Where tables are, and what works on them."""

    catalogs: dict[str, dict[str, str]] = Field(
        default_factory=dict,
        repr=False,
        description="Iceberg catalogs by name, as PyIceberg takes them; type sql without a uri is"
        " our own database.",
    )
    maintenance_engines: dict[str, dict[str, str]] = Field(
        default_factory=dict,
        repr=False,
        description="Remote engines by name: type trino or spark, url, catalog as it is called"
        " there, user, secrets.",
    )
    maintenance_seconds: Annotated[float, Field(ge=10, le=86_400)] = Field(
        600.0, description="Pace of the planner of table maintenance."
    )
