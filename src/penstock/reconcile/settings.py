"""Settings of reconciliation: runs and uploads."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from penstock.kit.config import Section


class RunSettings(Section):
    """Limits of runs."""

    active_runs_per_user: Annotated[int, Field(ge=1, le=100_000)] = Field(
        50, description="How many runs of recipes of one user may be under way at once."
    )
    reconcile_candidates_per_row: Annotated[int, Field(ge=1, le=10_000)] = Field(
        20,
        description="Candidate pairs that a rule of a reconciliation may have for each record of"
        " both sides; a recipe may say otherwise in limits.candidates_per_row.",
    )
    reconcile_memory_mb: Annotated[int, Field(ge=64, le=10_000_000)] = Field(
        2048, description="Memory of the engine that matches one run, in a worker."
    )
    reconcile_spill_mb: Annotated[int, Field(ge=1, le=100_000_000)] = Field(
        50_000,
        description="Temporary disk of the engine that matches one run, in a worker; never more"
        " than is free.",
    )


class UploadSettings(Section):
    """Limits of uploaded files, and of the processes that read them."""

    upload_max_mb: Annotated[int, Field(ge=1, le=100_000)] = Field(
        1024, description="Largest file that may be uploaded, in megabytes."
    )
    upload_unpacked_mb: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        10_240, description="What an uploaded file may unpack to, in megabytes."
    )
    upload_ratio: Annotated[int, Field(ge=2, le=100_000)] = Field(
        200,
        description="How many times its own size an uploaded workbook or .csv.gz may unpack to;"
        " what unpacks to less than 10 MB is not refused for it.",
    )
    upload_rows: Annotated[int, Field(ge=1, le=10_000_000_000)] = Field(
        100_000_000, description="Rows that an uploaded file may have."
    )
    upload_columns: Annotated[int, Field(ge=1, le=100_000)] = Field(
        16_384, description="Columns that an uploaded file may have."
    )
    upload_cells: Annotated[int, Field(ge=1, le=10_000_000_000)] = Field(
        10_000_000,
        description="Cells that an uploaded sheet may reach over, empty ones too: its last row"
        " times its last column.",
    )
    upload_memory_mb: Annotated[int, Field(ge=64, le=1_000_000)] = Field(
        1024, description="Memory of the process that reads one uploaded file, in megabytes."
    )
    upload_cpu_seconds: Annotated[int, Field(ge=1, le=86_400)] = Field(
        300, description="Processor time that reading one uploaded file may take."
    )
    upload_seconds: Annotated[int, Field(ge=1, le=86_400)] = Field(
        600, description="Time that reading one uploaded file may take; then its process is killed."
    )
    upload_parallel: Annotated[int, Field(ge=1, le=64)] = Field(
        2, description="Uploaded files that one control plane process reads at once; others wait."
    )
    uploads_at_once: Annotated[int, Field(ge=1, le=1000)] = Field(
        32,
        description="Files that one control-plane process receives or reads at once: with"
        " upload_max_mb that bounds its temporary disk. More wait, then get 429.",
    )
    uploads_at_once_per_user: Annotated[int, Field(ge=1, le=1000)] = Field(
        4, description="How many of them may be one user's; more wait, then get 429."
    )
    upload_quota_mb: Annotated[int, Field(ge=1, le=100_000_000)] = Field(
        10_240,
        description="What the uploads of one user may take together, as stored, in megabytes.",
    )
    upload_quota_files: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        1000, description="Uploads that one user may have."
    )
    upload_days: Annotated[int, Field(ge=1, le=3650)] = Field(
        30, description="Days after its last use by a run when an upload is deleted."
    )
