"""rewrite_manifests: many manifests become few, each with the files of neighbouring partitions.

Rebuilt from the head of the moment on every try, so there is nothing that it could conflict with.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from pyiceberg.manifest import ManifestContent

from penstock.maintenance.action import MB, Action, Ended, Name, Outcome
from penstock.maintenance.content import ManifestReader, partition_key
from penstock.maintenance.draft import Draft, kept
from penstock.maintenance.errors import ContentDiffers
from penstock.maintenance.replacement import carried, commit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyiceberg.manifest import ManifestEntry, ManifestFile

    from penstock.maintenance.content import Content
    from penstock.maintenance.lake import Lake
    from penstock.maintenance.run import Run

TARGET = 8 * MB
FILLED = 0.5
"""A manifest that is at least this full, alone in its spec, is good enough."""


class ManifestRewrite:
    def __init__(self, lake: Lake, run: Run, action: Action) -> None:
        self._lake = lake
        self._run = run
        self._target = action.number("target_bytes", TARGET)

    def plan(self) -> Outcome:
        content = self._content()
        if content is None or not self._worth(content):
            return Outcome(action=Name.REWRITE_MANIFESTS, status=Ended.NOTHING_TO_DO)
        return Outcome(
            action=Name.REWRITE_MANIFESTS,
            status=Ended.PLANNED,
            rewritten_files=len(content.manifests),
            rewritten_bytes=sum(m.manifest_length for m in content.manifests),
            files=tuple(m.manifest_path for m in content.manifests),
        )

    def execute(self) -> Outcome:
        content = self._content()
        if content is None or not self._worth(content):
            return Outcome(action=Name.REWRITE_MANIFESTS, status=Ended.NOTHING_TO_DO)
        table = self._lake.load()
        made: list[ManifestFile] = []

        def build(draft: Draft, head: Content) -> tuple[Sequence[ManifestFile], Mapping[str, str]]:
            made[:] = self._build(draft, head)
            return made, self._summary(head, made)

        done = commit(self._lake, self._run, ManifestReader(table.io), build)
        return Outcome(
            action=Name.REWRITE_MANIFESTS,
            status=Ended.COMPLETED,
            rewritten_files=len(content.manifests),
            rewritten_bytes=sum(m.manifest_length for m in content.manifests),
            added_files=len(made),
            added_bytes=sum(m.manifest_length for m in made),
            commits=1,
            tries=done.tries,
            snapshot_ids=(done.snapshot_id,),
        )

    def _content(self) -> Content | None:
        table = self._lake.load()
        snapshot = table.metadata.current_snapshot()
        return None if snapshot is None else ManifestReader(table.io).content(snapshot)

    def _worth(self, content: Content) -> bool:
        """More than would be needed, or some that hold nothing."""
        kinds: dict[tuple[int, ManifestContent], list[int]] = defaultdict(list)
        for manifest in content.manifests:
            kinds[manifest.partition_spec_id, manifest.content].append(manifest.manifest_length)
        idle = any(not (m.has_added_files() or m.has_existing_files()) for m in content.manifests)
        return idle or any(len(sizes) > 1 and len(sizes) > 2 * sum(sizes) / self._target for sizes in kinds.values())

    def _build(self, draft: Draft, head: Content) -> list[ManifestFile]:
        result = []
        for content, entries in ((ManifestContent.DATA, head.data), (ManifestContent.DELETES, head.deletes)):
            specs: dict[int, list[ManifestEntry]] = defaultdict(list)
            for entry in entries:
                specs[entry.data_file.spec_id].append(entry)
            for spec_id, group in specs.items():
                ordered = sorted(group, key=lambda e: _order(partition_key(e.data_file)[1]))
                result += list(self._written(draft, spec_id, content, ordered))
        count = sum((m.existing_files_count or 0) for m in result)
        if count != len(head.data) + len(head.deletes):
            raise ContentDiffers(f"{len(head.data) + len(head.deletes)} entries were read and {count} written.")
        return result

    def _written(
        self, draft: Draft, spec_id: int, content: ManifestContent, entries: Sequence[ManifestEntry]
    ) -> Iterator[ManifestFile]:
        rest = list(entries)[::-1]
        while rest:
            with draft.writer(spec_id, content) as writer:
                writer.add_entry(kept(rest.pop()))
                while rest and writer.tell() < self._target:
                    writer.add_entry(kept(rest.pop()))
            yield writer.to_manifest_file()

    def _summary(self, head: Content, made: Sequence[ManifestFile]) -> dict[str, str]:
        before = head.snapshot.summary
        totals = dict(before.additional_properties) if before is not None else {}
        return {
            "manifests-created": str(len(made)),
            "manifests-replaced": str(len(head.manifests)),
            "manifests-kept": "0",
            "entries-processed": str(len(head.data) + len(head.deletes)),
            **carried(totals, {}),
            **self._run.summary(Name.REWRITE_MANIFESTS),
        }


def _order(partition: tuple[object, ...]) -> tuple[tuple[bool, str, object], ...]:
    """Any order will do that keeps equal partitions together and like values near; None comes first."""
    return tuple((value is not None, type(value).__name__, 0 if value is None else value) for value in partition)
