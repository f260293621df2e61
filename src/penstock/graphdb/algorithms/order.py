"""The order of an algorithm run, passed to a child process as a JSON file, and the files that the
child answers with."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict

import orjson

from penstock.graphdb.algorithms.selection import Selection
from penstock.kit.errors import InvalidInput

if TYPE_CHECKING:
    from penstock.kit.json_value import JsonValue


class ValuesFile(TypedDict):
    """One value for each node of a label, as an Arrow file to be written back."""

    label: str
    suffix: str
    path: str


class Computed(TypedDict):
    """`result.json`: what the algorithm found, and where its values are."""

    result: dict[str, JsonValue]
    files: list[ValuesFile]


class Failure(TypedDict):
    """`error.json`: the error that the computation ended with."""

    code: str
    message: str
    hint: str | None
    details: dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """`data` is the folder of the exported graph, `out` the folder of the output: `result.json` and
    `values-*.arrow`, or `error.json`. With `keep_values` the result itself contains the first
    values, since they are not written back."""

    kind: Literal["native", "networkx"]
    name: str
    selection: Selection
    directed: bool | None
    parameters: dict[str, JsonValue] = field(default_factory=dict)
    keep_values: bool
    memory_bytes: int | None
    data: Path
    out: Path

    def write(self) -> Path:
        path = self.out / "order.json"
        path.write_bytes(self._as_json())
        return path

    def _as_json(self) -> bytes:
        try:
            return orjson.dumps(asdict(self), default=str)
        except TypeError as e:
            raise InvalidInput(
                f"A parameter has a value that cannot be encoded: {e}.",
                hint="Integers have 64 bits, texts are valid Unicode, and lists and maps nest up to"
                " 250 levels.",
            ) from e

    @classmethod
    def read(cls, path: Path) -> Order:
        content = orjson.loads(path.read_bytes())
        content |= {"data": Path(content["data"]), "out": Path(content["out"])}
        return cls(**(content | {"selection": Selection.from_json(content["selection"])}))
