"""Settings of graphs: exports, snapshots and instances."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from penstock.kit.config import Section


class ExportSettings(Section):
    """Limits of exports."""

    export_max_duration_seconds: Annotated[int, Field(ge=60, le=86_400)] = Field(
        3600, description="How long one export may take."
    )
    export_max_rows: Annotated[int, Field(ge=1, le=10**15)] = Field(
        1_000_000_000,
        description="Most rows of one export of an analyst: one label or edge type of a snapshot.",
    )
    export_max_mb: Annotated[int, Field(ge=1, le=10**9)] = Field(
        100_000,
        description="Most megabytes of one export of an analyst, as they are read from the source.",
    )
    export_max_rows_admin: Annotated[int, Field(ge=1, le=10**15)] = Field(
        10_000_000_000, description="Most rows of one export of an admin or operator."
    )
    export_max_mb_admin: Annotated[int, Field(ge=1, le=10**9)] = Field(
        1_000_000, description="Most megabytes of one export of an admin or operator."
    )


class SnapshotSettings(Section):
    """Limits of snapshots."""

    active_snapshots_per_user: Annotated[int, Field(ge=1, le=100_000)] = Field(
        50, description="How many snapshots of one user may be under way at once."
    )


class InstanceMemorySettings(Section):
    """Memory of instances."""

    instance_memory_per_user_gb: Annotated[int, Field(ge=2, le=100_000)] = Field(
        64, description="Memory that the instances of one user may have together."
    )
    instance_memory_total_gb: Annotated[int, Field(ge=2, le=1_000_000)] = Field(
        256, description="Memory that all instances may have together."
    )
