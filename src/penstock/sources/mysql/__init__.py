"""MySQL and MariaDB driver on PyMySQL: the server formats each row as CSV, which Arrow parses."""

from penstock.sources.mysql.source import MySQLSource, connect

__all__ = ["MySQLSource", "connect"]
