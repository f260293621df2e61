"""Where a table writes its files, by its properties. Custom location providers are not loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyiceberg.table import TableProperties
from pyiceberg.table.locations import load_location_provider

if TYPE_CHECKING:
    from pyiceberg.table.locations import LocationProvider
    from pyiceberg.table.metadata import TableMetadata

NAMES_CODE = TableProperties.WRITE_PY_LOCATION_PROVIDER_IMPL


def locations(metadata: TableMetadata) -> LocationProvider:
    properties = {name: value for name, value in metadata.properties.items() if name != NAMES_CODE}
    return load_location_provider(metadata.location, properties)
