"""A sandboxed DuckDB in this process, used by the drivers `duckdb` and `files`."""
