"""Writes the code of the client that is not committed: `python -m tools.generate`, `make generate`.

    src/penstock/client/_sync/      from `_async/`
    src/penstock/client/words.py    the words that a field may be
    src/penstock/client/shapes.py   what answers and requests look like, as typed dicts
    src/penstock/client/models.py   the API's resources, as frozen dataclasses

The last three come from `tools/client_api.json`, which `python -m tools.shapes` writes from the
API's description. Builds of the package (`hatch_build.py`), `bootstrap.sh` and pytest call this. It
needs nothing but Python, takes some milliseconds, and writes only what differs.
"""

from __future__ import annotations

import json
import keyword
import os
import re
from pathlib import Path
from typing import TypedDict

from tools.unasync import synchronous

ROOT = Path(__file__).resolve().parents[1]
CLIENT = ROOT / "src" / "penstock" / "client"
API = Path(__file__).with_name("client_api.json")

Fields = dict[str, str]
"""The fields of an object, and for each its type in Python's own notation."""


class Api(TypedDict):
    """`client_api.json`. `datetime` is a moment, which JSON has as text."""

    words: dict[str, list[str]]
    shapes: dict[str, Fields]


HEAD = "# Written by tools/generate.py and not committed: change what it is made from.\n"
MODELS = {
    "DataSourceInfo": ("DataSource",),
    "InstanceInfo": ("Instance",),
    "JobInfo": ("JobDetail",),
    "MappingInfo": ("Mapping", "MappingDetail"),
    "Progress": ("InstanceProgress", "SnapshotProgress"),
    "RunInfo": ("Run",),
    "SnapshotInfo": ("Snapshot",),
    "Step": ("InstanceStep",),
    "User": ("UserShown", "Bootstrapped"),
}
"""The dataclasses, and the objects whose fields they have."""
NESTED = {"NodeBody": "Node", "EdgeBody": "Edge", "InstanceStep": "Step"}
"""Objects inside a model that are dataclasses too; all others stay as they came. For those the
module has the names of their typed dicts, which only a type checker loads."""
HIDDEN = {"api_key", "callback_secret"}
"""Shown once, and never in a `repr`."""
DEFAULTS = {"str": '""', "int": "0", "float": "0.0", "bool": "False"}
EXPLAINED = {
    "DataSourceInfo": "A data source; its credentials are never in an answer.",
    "InstanceInfo": "An instance: a graph server and what it serves.",
    "JobInfo": "A job; what a list leaves out (payload, result, attempts) is there after "
    "`refresh()`.",
    "MappingInfo": "A mapping; a list leaves its definitions out.",
    "Progress": "Progress of an instance (`steps`) or of a snapshot (`jobs`, its exports).",
    "RunInfo": "A run of a recipe.",
    "SnapshotInfo": "The files of one mapping version at one moment.",
    "Step": "One step of an instance's start.",
    "User": "A user; `api_key` is there once, in the answer that makes the first user.",
}


def files() -> dict[Path, str]:
    """Every generated file and what belongs into it."""
    api: Api = json.loads(API.read_text())
    texts = {
        CLIENT / "words.py": words(api),
        CLIENT / "shapes.py": shapes(api),
        CLIENT / "models.py": models(api),
    }
    for file in sorted((CLIENT / "_async").glob("*.py")):
        texts[CLIENT / "_sync" / file.name] = HEAD + synchronous(file.read_text())
    return texts


def words(api: Api) -> str:
    lines = [f"{name} = Literal{json.dumps(values)}\n" for name, values in api["words"].items()]
    return _module("The words that a field may be.", "from typing import Literal\n", lines)


def shapes(api: Api) -> str:
    objects = [_typed_dict(name, fields) for name, fields in api["shapes"].items()]
    imports = "from typing import Literal, NotRequired, TypedDict\n\n" + _imports(api, objects)
    title = "What the API's answers and requests look like."
    return _module(title, "from __future__ import annotations\n\n" + imports, objects)


def models(api: Api) -> str:
    objects = [_dataclass(name, api) for name in MODELS]
    names = set(re.findall(r"\b[A-Z]\w+", "\n".join(objects)))
    plain = [name for name in api["shapes"] if name in names]
    imports = (
        "from __future__ import annotations\n\n"
        "from dataclasses import dataclass, field\nfrom datetime import datetime\n"
        "from typing import TYPE_CHECKING, Literal\n\n"
        "from penstock.client.definitions import Edge, Node\n"
        + _imports(api, objects)
        + f"if TYPE_CHECKING:\n    from penstock.client.shapes import {', '.join(plain)}\n"
        + f"else:\n    {' = '.join(plain)} = JsonObject\n"
    )
    title = "The API's resources: frozen, typed, with the server's whole answer in `raw`."
    return _module(title, imports, objects)


def _module(title: str, imports: str, parts: list[str]) -> str:
    return f'{HEAD}"""{title}"""\n\n{imports}\n\n' + "\n\n".join(parts)


def _imports(api: Api, parts: list[str]) -> str:
    names = set(re.findall(r"\b[A-Z]\w+", "\n".join(parts)))
    used = "".join(f"    {name},\n" for name in api["words"] if name in names)
    json_types = ", ".join(name for name in ("JsonObject", "JsonValue") if name in names)
    return (
        f"from penstock.client.json_value import {json_types}\n"
        f"from penstock.client.words import (\n{used})\n"
    )


def _typed_dict(name: str, fields: Fields) -> str:
    hints = {field: re.sub(r"\bdatetime\b", "str", hint) for field, hint in fields.items()}
    if any(keyword.iskeyword(field) for field in hints):
        lines = "".join(f'        "{field}": {hint},\n' for field, hint in hints.items())
        return f'{name} = TypedDict(\n    "{name}",\n    {{\n{lines}    }},\n)\n'
    lines = "".join(f"    {field}: {hint}\n" for field, hint in hints.items())
    return f"class {name}(TypedDict):\n{lines or '    pass'}\n"


def _dataclass(name: str, api: Api) -> str:
    """Only the first field must be there: lists say less, and so may other servers."""
    fields: Fields = {}
    for source in MODELS[name]:
        for field, hint in api["shapes"][source].items():
            attribute = _attribute(hint)
            if attribute != fields.setdefault(field, attribute):
                fields[field] += f" | {attribute}"
    first, *others = fields.items()
    lines = [f"    {first[0]}: {first[1]}"]
    lines += [f"    {field}: {hint}{_default(field, hint, api)}" for field, hint in others]
    if name != "Step":
        lines.append("    raw: JsonObject = field(default_factory=dict, repr=False)")
    head = f'@dataclass(frozen=True, slots=True, kw_only=True)\nclass {name}:\n    """'
    return f'{head}{EXPLAINED[name]}"""\n\n' + "\n".join(lines) + "\n"


def _attribute(hint: str) -> str:
    """A field of a typed dict as one of a dataclass."""
    hint = re.sub(r"^NotRequired\[(.*)\]$", r"\1", hint).replace(
        "dict[str, JsonValue]", "JsonObject"
    )
    hint = re.sub(r"\blist\[(\w+)\]", r"tuple[\1, ...]", hint)
    return re.sub(r"\b[A-Z]\w+", lambda name: NESTED.get(name[0], name[0]), hint)


def _default(field: str, hint: str, api: Api) -> str:
    if "None" in hint.split(" | ") or hint == "JsonValue":
        return " = field(default=None, repr=False)" if field in HIDDEN else " = None"
    if hint.startswith("tuple["):
        return " = ()"
    if hint.startswith("dict[") or hint == "JsonObject":
        return " = field(default_factory=dict)"
    if hint in api["words"]:
        return f" = {json.dumps(api['words'][hint][0])}"
    return f" = {DEFAULTS[hint]}" if hint in DEFAULTS else " | None = None"


def generate() -> list[Path]:
    """Bring the generated files up to date; what was written, or removed as it has no source."""
    expected = files()
    (CLIENT / "_sync").mkdir(exist_ok=True)
    changed = [file for file in (CLIENT / "_sync").glob("*.py") if file not in expected]
    for file in changed:
        file.unlink(missing_ok=True)
    for file, text in expected.items():
        if not file.exists() or file.read_text() != text:
            draft = file.with_suffix(f".{os.getpid()}")
            draft.write_text(text)
            draft.replace(file)
            changed.append(file)
    return changed


def main() -> None:
    for file in generate():
        print(file.relative_to(ROOT))


if __name__ == "__main__":
    main()
