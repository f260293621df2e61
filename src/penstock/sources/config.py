"""A driver's configuration: a frozen dataclass, filled from a source's `config` and, for its secret fields, `secrets`.

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Config:
        host: str
        port: Annotated[int, Field(ge=1, le=65535)] = 5432
        password: str = secret()

The two never mix: a secret that stands in `config` is refused, for `config` is shown to people.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import TypeAdapter, ValidationError, with_config

from penstock.kit.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")


def secret(default: Any = dataclasses.MISSING) -> Any:
    """A field that is read from `secrets` only and never shown by `repr`."""
    metadata = {"secret": True}
    if default is dataclasses.MISSING:
        return dataclasses.field(repr=False, metadata=metadata)
    return dataclasses.field(default=default, repr=False, metadata=metadata)


def read(kind: type[T], config: Mapping[str, object], secrets: Mapping[str, str], *, source: str) -> T:
    """The configuration as `kind`; what does not fit is named in one sentence, its value never shown."""
    hidden = _secret_names(kind)
    if misplaced := sorted(hidden & config.keys()):
        raise InvalidInput(f"{source}: {', '.join(misplaced)} belongs in the secrets, not in the configuration.")
    known = {name: value for name, value in secrets.items() if name in hidden}
    try:
        return TypeAdapter(with_config(extra="forbid")(kind)).validate_python({**config, **known})
    except ValidationError as e:
        raise InvalidInput(f"{source}: {_sentence(e)}") from None


def _secret_names(kind: type[Any]) -> set[str]:
    return {f.name for f in dataclasses.fields(kind) if f.metadata.get("secret")}


def _sentence(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    name = ".".join(str(part) for part in first["loc"])
    match first["type"]:
        case "unexpected_keyword_argument" | "extra_forbidden":
            return f"there is no setting {name}."
        case "missing" | "missing_argument" | "missing_keyword_only_argument":
            return f"{name} is missing."
        case _ if name:
            return f"{name}: {first['msg']}."
        case _:
            return f"{first['msg']}."
