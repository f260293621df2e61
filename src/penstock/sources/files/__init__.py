"""Files driver: Parquet and CSV files in a folder, S3 or GCS, read as tables."""

from penstock.sources.files.source import FilesSource, connect

__all__ = ["FilesSource", "connect"]
