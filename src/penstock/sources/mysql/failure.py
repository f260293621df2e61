"""Translate MySQL's errors by number; PyMySQL's classes mix user errors with network errors."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from penstock.sources.errors import SourceError, SourceQueryError, SourceRefused, SourceUnavailable
from penstock.sources.mysql.connection import MySQLFailure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.kit.errors import PenstockError
    from penstock.sources.mysql.config import Config

_REFUSED = {
    1044,  # no access to this database
    1045,  # wrong user or password
    1049,  # no such database
    1130,  # no access from this host
    1142,  # no access to this table
    1143,  # no access to this column
    1227,  # a privilege is missing
    1698,  # a user without a password
}
_AWAY = {
    1040,  # too many connections
    1053,  # shutting down
    *range(1158, 1162),  # network errors at the server
    1203,  # too many connections of this user
    1205,  # lock wait timeout
    1213,  # deadlock
    1226,  # the user exceeded a resource limit
    1317,  # the query was interrupted
    1927,  # the connection was killed (MariaDB)
    1969,  # query timeout (MariaDB)
    3024,  # query timeout (MySQL)
    *range(2000, 3000),  # client errors: all of them are connection errors
}
_SERVERS_OWN = {1021, 1030, 1037, 1041, 1114}  # disk, storage engine or memory of the server


@contextmanager
def translated(config: Config) -> Iterator[None]:
    try:
        yield
    except MySQLFailure as e:
        text = e.text.replace(config.password, "…") if config.password else e.text
        raise _kind(e.number)(text, errno=e.number) from None
    except OSError as e:
        raise SourceUnavailable(f"{config.host} cannot be reached: {e.strerror or e}.") from None


def _kind(number: int) -> type[PenstockError]:
    if number in _REFUSED:
        return SourceRefused
    if number in _AWAY or number == 0:
        return SourceUnavailable
    return SourceError if number in _SERVERS_OWN else SourceQueryError
