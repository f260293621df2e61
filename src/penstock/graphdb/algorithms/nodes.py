"""The nodes of a topology, indexed from 0 across all labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.graphdb.algorithms.errors import NodeNotFound
from penstock.kit.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """`keys[i]` are the primary keys of `labels[i]` in the order of the engine's offsets."""

    labels: tuple[str, ...]
    keys: tuple[pa.Array, ...]
    starts: Ints

    @classmethod
    def of(cls, labels: Sequence[str], keys: Sequence[pa.Array]) -> Nodes:
        starts = np.concatenate([[0], np.cumsum([len(k) for k in keys], dtype=np.int64)]).astype(
            np.int64
        )
        return cls(labels=tuple(labels), keys=tuple(keys), starts=starts)

    @property
    def count(self) -> int:
        return int(self.starts[-1])

    def span(self, label: str) -> slice:
        at = self.labels.index(label)
        return slice(int(self.starts[at]), int(self.starts[at + 1]))

    def ids(self, indexes: Sequence[int] | Ints) -> list[str]:
        """`Label:key` for each index, in their order."""
        positions = np.asarray(indexes, dtype=np.int64)
        names = np.empty(len(positions), dtype=object)
        which = np.searchsorted(self.starts, positions, side="right") - 1
        for at in np.unique(which).tolist():
            mine = which == at
            texts = (
                self.keys[at]
                .take(pa.array(positions[mine] - self.starts[at]))
                .cast(pa.string())
                .to_pylist()
            )
            names[mine] = [f"{self.labels[at]}:{text}" for text in texts]
        result: list[str] = names.tolist()
        return result

    def find(self, reference: object, parameter: str) -> int:
        """The index of `Label:key`, or of a bare key that only one label has."""
        if isinstance(reference, str) and (at := reference.partition(":"))[0] in self.labels:
            exact = self._in_label(self.labels.index(at[0]), at[2])
            if exact is not None:
                return exact
        if not isinstance(reference, str | int | float) or isinstance(reference, bool):
            raise InvalidInput(
                f"{parameter} must be a node's id such as 'Label:key'.", parameter=parameter
            )
        matches = [
            x
            for x in (self._in_label(i, reference) for i in range(len(self.labels)))
            if x is not None
        ]
        if len(matches) > 1:
            ids = self.ids(matches)
            raise InvalidInput(
                f"{parameter} {str(reference)[:80]!r} is a key of several labels.",
                hint=f"Use one of {', '.join(ids)}.",
                parameter=parameter,
                candidates=ids,
            )
        if not matches:
            raise NodeNotFound(
                f"{parameter}: there is no node {str(reference)[:80]!r} among"
                f" {', '.join(self.labels)}.",
                hint="An id is 'Label:key', or the key alone where only one label has it.",
                parameter=parameter,
            )
        return matches[0]

    def _in_label(self, at: int, key: str | float) -> int | None:
        try:
            scalar = pa.scalar(key).cast(self.keys[at].type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, OverflowError):
            return None
        position = pc.index(self.keys[at], scalar).as_py()
        return None if position < 0 else int(self.starts[at]) + int(position)

    def order(self) -> Ints:
        """Each node's rank by label, then key: breaks ties independently of the order of rows."""
        ranks = np.empty(self.count, dtype=np.int64)
        for at, keys in enumerate(self.keys):
            sorted_rows = pc.array_sort_indices(keys).to_numpy().astype(np.int64)
            ranks[sorted_rows + self.starts[at]] = np.arange(len(keys)) + self.starts[at]
        return ranks
