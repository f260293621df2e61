from __future__ import annotations

from pydantic import BaseModel, TypeAdapter

from penstock.kit.json_value import JsonObject, JsonValue


class Body(BaseModel):
    payload: JsonValue
    labels: JsonObject


def test_a_model_takes_json_of_any_depth_as_it_is() -> None:
    sent: JsonObject = {"payload": [1, 2.0, True, None, {"a": "b"}], "labels": {"deep": [[]]}}
    body = Body.model_validate(sent)
    assert body.payload is sent["payload"]
    assert body.model_dump() == sent


def test_the_alias_alone_validates() -> None:
    assert TypeAdapter(JsonValue).validate_python({"a": [1]}) == {"a": [1]}
