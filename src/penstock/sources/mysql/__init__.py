"""MySQL and MariaDB by PyMySQL: the server writes each row as one line of CSV, which Arrow parses."""

from penstock.sources.mysql.source import MySQLSource, connect

__all__ = ["MySQLSource", "connect"]
