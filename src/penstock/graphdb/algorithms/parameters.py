"""Parameters of algorithms: names, types, defaults and ranges, and their validation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from penstock.kit.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from penstock.kit.json_value import JsonValue

Kind: TypeAlias = Literal[
    "integer", "number", "boolean", "string", "node", "nodes", "pairs", "numbers"
]
_MOST_ITEMS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """`minimum` and `maximum` are inclusive bounds, `above` and `below` exclusive ones."""

    name: str
    type: Kind
    description: str
    default: JsonValue = None
    required: bool = False
    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    below: float | None = None
    choices: tuple[str, ...] = ()

    def range(self) -> str:
        if self.choices:
            return "one of " + ", ".join(self.choices)
        low = f"at least {self.minimum:g}" if self.minimum is not None else ""
        low = f"more than {self.above:g}" if self.above is not None else low
        high = f"at most {self.maximum:g}" if self.maximum is not None else ""
        high = f"less than {self.below:g}" if self.below is not None else high
        return " and ".join(part for part in (low, high) if part)

    def check(self, value: JsonValue) -> JsonValue:
        if value is None:
            if self.required:
                raise InvalidInput(
                    f"{self.name} is required: {self.description}", parameter=self.name
                )
            return self.default
        checked = self._typed(value)
        if not self._within(checked):
            raise self._refused(f"{self.name} must be {self.range()}, not {str(value)[:80]}.")
        return checked

    def _typed(self, value: JsonValue) -> JsonValue:
        match self.type, value:
            case "integer", bool() | float() if (
                not isinstance(value, float) or not value.is_integer()
            ):
                pass
            case "integer", int() | float():
                return int(value)
            case "number", int() | float() if not isinstance(value, bool):
                return float(value)
            case "boolean", bool():
                return value
            case "string", str() if len(value) <= 1000:
                return value
            case "node", str() | int() if not isinstance(value, bool):
                return value
            case (("nodes" | "pairs" | "numbers"), list()) if 0 < len(value) <= _MOST_ITEMS:
                return self._listed(value)
        raise self._refused(f"{self.name} must be {_ARTICLES[self.type]}, not {str(value)[:80]!r}.")

    def _listed(self, value: list[JsonValue]) -> JsonValue:
        if not all(_ITEMS[self.type](item) for item in value):
            raise self._refused(f"{self.name} must be {_ARTICLES[self.type]}.")
        return value

    def _within(self, value: JsonValue) -> bool:
        if self.choices:
            return value in self.choices
        numbers = value if isinstance(value, list) and self.type == "numbers" else [value]
        return all(self._bounded(number) for number in numbers if isinstance(number, int | float))

    def _bounded(self, value: float) -> bool:
        return (
            value == value  # NaN is in no range
            and (self.minimum is None or value >= self.minimum)
            and (self.maximum is None or value <= self.maximum)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
        )

    def _refused(self, message: str) -> InvalidInput:
        return InvalidInput(
            message, parameter=self.name, type=self.type, range=self.range() or None
        )

    def describe(self) -> dict[str, JsonValue]:
        bounds = {"minimum": self.minimum, "maximum": self.maximum}
        bounds |= {"exclusive_minimum": self.above, "exclusive_maximum": self.below}
        described: dict[str, JsonValue] = {
            "name": self.name,
            "type": self.type,
            "description": self.description,
        }
        described |= {"required": self.required, "default": self.default}
        described |= {name: bound for name, bound in bounds.items() if bound is not None}
        return described | ({"choices": list(self.choices)} if self.choices else {})


def _is_node(value: JsonValue) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _is_pair(value: JsonValue) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_is_node, value))


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_ITEMS: Mapping[Kind, Callable[[JsonValue], bool]] = {
    "nodes": _is_node,
    "pairs": _is_pair,
    "numbers": _is_number,
}
_ARTICLES: Mapping[Kind, str] = {
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "string": "a text of at most 1000 characters",
    "node": "a node's id",
    "nodes": f"a list of 1 to {_MOST_ITEMS} node ids",
    "pairs": f"a list of 1 to {_MOST_ITEMS} pairs of node ids",
    "numbers": f"a list of 1 to {_MOST_ITEMS} numbers",
}


def check(parameters: Sequence[Parameter], values: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Every parameter with its value or default; an unknown name is refused."""
    names = [p.name for p in parameters]
    if unknown := sorted(set(values) - set(names)):
        raise InvalidInput(
            f"There is no parameter {unknown[0][:80]!r}.",
            hint=f"The parameters are: {', '.join(names) or 'none'}.",
            parameter=unknown[0][:80],
            known=names,
        )
    return {p.name: p.check(values.get(p.name)) for p in parameters}
