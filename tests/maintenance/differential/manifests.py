"""Manifests read exactly: PyIceberg's compiled decoder takes doubles for floats, the other not."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING
from unittest.mock import patch

from pyiceberg.avro.decoder import StreamingBinaryDecoder
from pyiceberg.exceptions import ResolveError
from pyiceberg.manifest import ManifestContent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyiceberg.manifest import DataFile, ManifestEntry, ManifestFile
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot


def live_entries(table: Table, manifest: ManifestFile) -> list[ManifestEntry]:
    with patch("pyiceberg.avro.file.new_decoder", StreamingBinaryDecoder):
        return manifest.fetch_manifest_entry(table.io, discard_deleted=True)


def live_data_files(table: Table, snapshot: Snapshot | None) -> Iterator[DataFile]:
    for manifest in [] if snapshot is None else snapshot.manifests(table.io):
        if manifest.content == ManifestContent.DATA:
            yield from (entry.data_file for entry in live_entries(table, manifest))


def all_files(table: Table) -> list[DataFile] | None:
    """Data and delete files that any snapshot has; None where PyIceberg misreads a manifest."""
    snapshots = table.metadata.snapshots
    try:
        manifests = {m.manifest_path: m for s in snapshots for m in s.manifests(table.io)}
        return [e.data_file for m in manifests.values() for e in live_entries(table, m)]
    except MISREADINGS:
        return None


def partition_values(file: DataFile) -> list[object]:
    return [file.partition[at] for at in range(len(file.partition))]


def facts_of_files(table: Table) -> dict[str, list[str]] | None:
    """All that the current snapshot says of each live file, its sequence number included. A path
    that is live more than once has as many facts.

    None where PyIceberg cannot read the manifests.
    """
    snapshot = table.metadata.current_snapshot()
    try:
        entries = [
            entry
            for manifest in ([] if snapshot is None else snapshot.manifests(table.io))
            for entry in live_entries(table, manifest)
        ]
    except MISREADINGS:
        return None
    facts: dict[str, list[str]] = defaultdict(list)
    for entry in entries:
        facts[entry.data_file.file_path].append(_facts(entry))
    return {path: sorted(of_path) for path, of_path in facts.items()}


MISREADINGS = (EOFError, TypeError, ValueError, SystemError, OverflowError, ResolveError)
"""What PyIceberg raises of manifests with partition values of some types, `fixed` above all."""


def _facts(entry: ManifestEntry) -> str:
    file = entry.data_file
    maps = (
        *(file.column_sizes, file.value_counts, file.null_value_counts, file.nan_value_counts),
        *(file.lower_bounds, file.upper_bounds),
    )
    return repr(
        (
            *(entry.sequence_number, entry.file_sequence_number, entry.snapshot_id),
            *(file.content, file.spec_id, file.partition, file.record_count),
            *(file.file_size_in_bytes, file.split_offsets, file.equality_ids, file.sort_order_id),
            *(sorted((values or {}).items()) for values in maps),
        )
    )
