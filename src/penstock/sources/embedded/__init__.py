"""A DuckDB in this process that reaches nothing but what it was given; the drivers `duckdb` and
`files` stand on it."""
