"""PostgreSQL driver on ADBC: binary COPY into Arrow, exact numerics, chunks that share one exported
snapshot."""

from penstock.sources.postgres.source import PostgresSource, connect

__all__ = ["PostgresSource", "connect"]
