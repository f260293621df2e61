"""rewrite_manifests: merge many manifests into few, clustered by partition.

Every try is rebuilt from the current snapshot, so the action cannot conflict with other writers.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.maintenance.actions.budget import Budget
from penstock.maintenance.actions.model import MB, Action, Ended, Name, Outcome
from penstock.maintenance.errors import CommitConflict, ContentDiffers, Refused
from penstock.maintenance.tables.commit.protection import Allowed
from penstock.maintenance.tables.commit.replacement import Abandoned, commit, updated_totals
from penstock.maintenance.tables.commit.snapshot_draft import Draft, existing_entry
from penstock.maintenance.tables.reading.content import ManifestReader, partition_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyiceberg.manifest import ManifestContent, ManifestEntry, ManifestFile

    from penstock.maintenance.actions.context import ActionContext
    from penstock.maintenance.tables.catalog.table_access import TableAccess
    from penstock.maintenance.tables.commit.replacement import Committed
    from penstock.maintenance.tables.reading.content import Content

TARGET = 8 * MB


ROUND = 100
"""Manifests per commit when the action has a time limit."""


class ManifestRewrite:
    def __init__(
        self,
        table_access: TableAccess,
        context: ActionContext,
        action: Action,
        reader: ManifestReader | None = None,
    ) -> None:
        self._table_access = table_access
        self._reader = reader or ManifestReader(table_access.load().io)
        self._context = context
        self._target = action.number("target_bytes", TARGET)
        self._budget = Budget(context, action)

    def plan(self) -> Outcome:
        chosen = self._chosen()
        return Outcome(
            action=Name.REWRITE_MANIFESTS,
            status=Ended.PLANNED if chosen else Ended.NOTHING_TO_DO,
            rewritten_files=len(chosen),
            rewritten_bytes=sum(m.manifest_length for m in chosen),
            files=tuple(m.manifest_path for m in chosen),
            message="" if chosen else self._budget.message(done=False),
        )

    def execute(self) -> Outcome:
        chosen = self._chosen()
        size = ROUND if self._budget.timed else len(chosen)
        rounds = [chosen[start : start + size] for start in range(0, len(chosen), size or 1)]
        done: list[_Round] = []
        for manifests in rounds:
            if done and self._budget.late():
                break
            try:
                done.append(self._rewrite(manifests))
            except (CommitConflict, Refused) as e:
                if not done:
                    raise
                return replace(self._outcome(done), status=Ended.PARTIAL, message=e.message)
        return self._outcome(done)

    def _outcome(self, done: Sequence[_Round]) -> Outcome:
        ended = (
            Ended.PARTIAL
            if self._budget.spent
            else Ended.COMPLETED
            if done
            else Ended.NOTHING_TO_DO
        )
        return Outcome(
            action=Name.REWRITE_MANIFESTS,
            status=ended,
            rewritten_files=sum(len(batch.replaced) for batch in done),
            rewritten_bytes=sum(m.manifest_length for batch in done for m in batch.replaced),
            added_files=sum(len(batch.written) for batch in done),
            added_bytes=sum(m.manifest_length for batch in done for m in batch.written),
            commits=len(done),
            tries=sum(batch.committed.tries for batch in done),
            snapshot_ids=tuple(batch.committed.snapshot_id for batch in done),
            message=self._budget.message(done=bool(done)),
        )

    def _chosen(self) -> list[ManifestFile]:
        """All manifests if a rewrite is worthwhile; the smallest ones if the budget is limited."""
        content = self._content()
        if content is None or not self._worth(content):
            return []
        fits = self._budget.fitting(
            sorted(content.manifests, key=lambda m: m.manifest_length), lambda m: m.manifest_length
        )
        return fits if not self._budget.spent or len(fits) > 1 else []

    def _rewrite(self, chosen: Sequence[ManifestFile]) -> _Round:
        paths = frozenset(m.manifest_path for m in chosen)
        replaced: list[ManifestFile] = []
        written: list[ManifestFile] = []

        def build(draft: Draft, head: Content) -> tuple[Sequence[ManifestFile], Mapping[str, str]]:
            whole = not self._budget.sized and not self._budget.timed
            replaced[:] = [m for m in head.manifests if whole or m.manifest_path in paths]
            if not replaced:
                raise Abandoned("Another writer rewrote the manifests concurrently.")
            written[:] = self._build(draft, replaced)
            gone = {m.manifest_path for m in replaced}
            rest = [m for m in head.manifests if m.manifest_path not in gone]
            return [*written, *rest], self._summary(head, written, replaced)

        allowed = Allowed(Name.REWRITE_MANIFESTS)
        committed = commit(self._table_access, self._context, self._reader, build, allowed=allowed)
        return _Round(replaced=tuple(replaced), written=tuple(written), committed=committed)

    def _content(self) -> Content | None:
        table = self._table_access.load()
        snapshot = table.metadata.current_snapshot()
        return None if snapshot is None else self._reader.content(snapshot)

    def _worth(self, content: Content) -> bool:
        """Whether there are more manifests than needed, or empty ones."""
        kinds: dict[tuple[int, ManifestContent], list[int]] = defaultdict(list)
        for manifest in content.manifests:
            kinds[manifest.partition_spec_id, manifest.content].append(manifest.manifest_length)
        idle = any(not (m.has_added_files() or m.has_existing_files()) for m in content.manifests)
        return idle or any(
            len(sizes) > 1 and len(sizes) > 2 * sum(sizes) / self._target
            for sizes in kinds.values()
        )

    def _build(self, draft: Draft, replaced: Sequence[ManifestFile]) -> list[ManifestFile]:
        groups: dict[tuple[ManifestContent, int], list[ManifestEntry]] = defaultdict(list)
        for manifest in replaced:
            groups[manifest.content, manifest.partition_spec_id] += self._reader.entries(manifest)
        result = []
        for (content, spec_id), entries in groups.items():
            ordered = sorted(entries, key=lambda e: _order(partition_values(e.data_file)))
            result += list(self._written(draft, spec_id, content, ordered))
        count, expected = (
            sum((m.existing_files_count or 0) for m in result),
            sum(len(e) for e in groups.values()),
        )
        if count != expected:
            raise ContentDiffers(f"{expected} manifest entries were read but {count} written.")
        return result

    def _written(
        self, draft: Draft, spec_id: int, content: ManifestContent, entries: Sequence[ManifestEntry]
    ) -> Iterator[ManifestFile]:
        rest = list(entries)[::-1]
        while rest:
            with draft.writer(spec_id, content) as writer:
                writer.add_entry(existing_entry(rest.pop()))
                while rest and writer.tell() < self._target:
                    writer.add_entry(existing_entry(rest.pop()))
            yield writer.to_manifest_file()

    def _summary(
        self, head: Content, written: Sequence[ManifestFile], replaced: Sequence[ManifestFile]
    ) -> dict[str, str]:
        before = head.snapshot.summary
        totals = dict(before.additional_properties) if before is not None else {}
        return {
            "manifests-created": str(len(written)),
            "manifests-replaced": str(len(replaced)),
            "manifests-kept": str(len(head.manifests) - len(replaced)),
            "entries-processed": str(sum(m.existing_files_count or 0 for m in written)),
            **updated_totals(totals, {}),
            **self._context.summary(Name.REWRITE_MANIFESTS),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Round:
    replaced: tuple[ManifestFile, ...]
    written: tuple[ManifestFile, ...]
    committed: Committed


def _order(partition: tuple[object, ...]) -> tuple[tuple[bool, str, object], ...]:
    """A sort key that clusters equal and similar partitions; None and NaN come first."""
    return tuple(
        (
            value is not None and value == value,
            type(value).__name__,
            value if value == value and value is not None else 0,
        )
        for value in partition
    )
