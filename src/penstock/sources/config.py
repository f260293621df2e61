"""Parse a driver's configuration: a frozen dataclass, filled from a source's `config` and, for its
secret fields, `secrets`.

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Config:
        host: str
        port: Annotated[int, Field(ge=1, le=65535)] = 5432
        password: str = secret()

A secret in `config` is rejected, because `config` is shown to users.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import TypeAdapter, ValidationError, with_config

from penstock.kit.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")


def secret(default: Any = dataclasses.MISSING) -> Any:
    """A field that is read only from `secrets` and left out of `repr`."""
    metadata = {"secret": True}
    if default is dataclasses.MISSING:
        return dataclasses.field(repr=False, metadata=metadata)
    return dataclasses.field(default=default, repr=False, metadata=metadata)


def read(
    kind: type[T], config: Mapping[str, object], secrets: Mapping[str, str], *, source: str
) -> T:
    """The configuration as `kind`; an error names the field, never its value."""
    hidden = _secret_names(kind)
    if misplaced := sorted(hidden & config.keys()):
        raise InvalidInput(
            f"{source}: {', '.join(misplaced)} belongs in the secrets, not in the configuration.",
            field=f"config.{misplaced[0]}",
        )
    if unknown := sorted(secrets.keys() - hidden):
        raise InvalidInput(
            f"{source}: there is no secret {unknown[0][:80]}.",
            hint=f"Known: {', '.join(sorted(hidden))}." if hidden else "It has none.",
            field=f"credentials.{unknown[0][:80]}",
        )
    try:
        return TypeAdapter(with_config(extra="forbid")(kind)).validate_python({**config, **secrets})
    except ValidationError as e:
        first = e.errors(include_url=False, include_input=False, include_context=False)[0]
        name = ".".join(str(part)[:80] for part in first["loc"])
        field = f"{'credentials' if name in hidden else 'config'}.{name}".rstrip(".")
        raise InvalidInput(
            f"{source}: {_sentence(first['type'], name, first['msg'])}", field=field
        ) from None


def _secret_names(kind: type[T]) -> set[str]:
    return {f.name for f in dataclasses.fields(kind) if f.metadata.get("secret")}


def _sentence(problem: str, name: str, message: str) -> str:
    match problem:
        case "unexpected_keyword_argument" | "extra_forbidden":
            return f"there is no setting {name}."
        case "missing" | "missing_argument" | "missing_keyword_only_argument":
            return f"{name} is missing."
        case _ if name:
            return f"{name}: {message}."
        case _:
            return f"{message}."
