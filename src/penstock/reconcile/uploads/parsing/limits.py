"""Limits of the size and content of uploaded files, which the parser process checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.kit.errors import InvalidInput, PayloadTooLarge

if TYPE_CHECKING:
    from penstock.reconcile.settings import UploadSettings

MB = 1024 * 1024
RATIO_FREE_BYTES = 10 * MB
"""The compression ratio is not limited below this unpacked size."""
MAX_ENTRIES = 10_000
"""Files in a workbook; real ones have tens, with pictures hundreds."""
MAX_FOOTER_BYTES = 16 * MB
"""The metadata at the end of a Parquet file."""
MAX_SHEET_ROW_BYTES = 64 * MB
"""One row of a sheet, as XML."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLimits:
    """Limits of one file; each is the largest accepted number."""

    unpacked_bytes: int = 10 * 1024 * MB
    ratio: int = 200
    rows: int = 100_000_000
    columns: int = 16_384
    cells: int = 10_000_000
    """Cells of a sheet from its first to its last, including empty ones: a reader allocates all."""

    @classmethod
    def of(cls, settings: UploadSettings) -> TableLimits:
        return cls(
            unpacked_bytes=settings.upload_unpacked_mb * MB,
            ratio=settings.upload_ratio,
            rows=settings.upload_rows,
            columns=settings.upload_columns,
            cells=settings.upload_cells,
        )

    def check_unpacked(self, size: int, packed: int, what: str, unit: str = "bytes") -> None:
        """Refuse a file that unpacks to too much, or to far more than its size."""
        if size > self.unpacked_bytes:
            message = f"The {what} unpacks to more than {self.unpacked_bytes:,} {unit}."
            raise PayloadTooLarge(message, limit=self.unpacked_bytes)
        if size > RATIO_FREE_BYTES and size > self.ratio * packed:
            message = f"The {what} unpacks to more than {self.ratio:,} times its size."
            raise PayloadTooLarge(message, hint="Upload it without compression.", limit=self.ratio)

    def check_rows(self, count: int) -> None:
        if count > self.rows:
            message = f"The file has more than {self.rows:,} rows."
            raise PayloadTooLarge(message, hint="Split the file.", limit=self.rows)

    def check_columns(self, count: int) -> None:
        if count > self.columns:
            raise InvalidInput(
                f"The file has {count:,} columns; the limit is {self.columns:,}.",
                hint="Leave out those that no rule needs.",
                limit=self.columns,
            )

    def check_cells(self, rows: int, columns: int) -> None:
        if rows * columns > self.cells:
            raise PayloadTooLarge(
                f"The sheet reaches to row {rows:,} and column {columns:,}, which are"
                f" {rows * columns:,} cells; the limit is {self.cells:,}.",
                hint="Delete stray cells far from the table, or save it as .csv.",
                limit=self.cells,
            )
