"""Settings of data sources: what one of them may ask for."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from penstock.kit.config import Section


class SourceSettings(Section):
    """Ceilings of sources, and how many questions to them run at once."""

    source_memory_mb: Annotated[int, Field(ge=64, le=1_000_000)] = Field(
        1024,
        description="Most memory that a data source may ask for, in megabytes (memory_limit of its"
        " DuckDB).",
    )
    source_threads: Annotated[int, Field(ge=1, le=256)] = Field(
        4, description="Most threads that a data source may ask for (threads of its DuckDB)."
    )
    source_spill_mb: Annotated[int, Field(ge=1, le=100_000_000)] = Field(
        10_000,
        description="Most temporary disk that a data source may ask for, in megabytes (spill_limit"
        " of its DuckDB).",
    )
    source_buffer_mb: Annotated[int, Field(ge=1, le=10_000)] = Field(
        64,
        description="Largest piece that a data source may be read in, in megabytes"
        " (csv.block_bytes, page_bytes).",
    )
    source_parallel: Annotated[int, Field(ge=1, le=32)] = Field(
        8, description="Most requests at once that a data source may ask for (parallel of a Trino)."
    )
    source_wait_seconds: Annotated[int, Field(ge=60, le=86_400)] = Field(
        3600,
        description="Longest time that a data source may have us wait for it (its timeouts and"
        " silence_seconds).",
    )
    source_questions: Annotated[int, Field(ge=1, le=1000)] = Field(
        8,
        description="How many tests, previews, validations and suggestions of data sources one"
        " control-plane process runs at once: with source_memory_mb that bounds its memory. More"
        " wait, then get 429.",
    )
    source_questions_per_user: Annotated[int, Field(ge=1, le=1000)] = Field(
        4, description="How many of them may be one user's; more wait, then get 429."
    )
