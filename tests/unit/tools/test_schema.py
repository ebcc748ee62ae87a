"""What a model is told of a tool's arguments, in as few words as say it (CTX-12)."""

from typing import Literal

import pytest
from pydantic import BaseModel, Field

from runtime.tools.schema import of_arguments


class Spend(BaseModel):
    """A type that is named in one place."""

    tokens: int


class Kind(BaseModel):
    """A type that is named in two places."""

    kind: Literal["a", "b"]
    spend: Spend | None = None


class Both(BaseModel):
    """What a call has."""

    first: Kind
    others: list[Kind]


class Tree(BaseModel):
    """A type that is named in itself."""

    children: list["Tree"]


@pytest.mark.requirement("CTX-12")
def test_a_type_that_is_named_once_stands_where_it_is_named() -> None:
    schema = of_arguments(Kind.model_json_schema())
    spend = {"properties": {"tokens": {"type": "integer"}}, "required": ["tokens"]}
    assert schema["properties"] == {
        "kind": {"enum": ["a", "b"], "type": "string"},
        "spend": {**spend, "type": "object"},
    }
    assert "$defs" not in schema


@pytest.mark.requirement("CTX-12")
def test_a_type_that_is_named_more_often_is_defined_once() -> None:
    for model, name in ((Both, "Kind"), (Tree, "Tree")):
        schema = of_arguments(model.model_json_schema())
        assert list(schema["$defs"]) == [name]
        assert "Spend" not in str(schema)


class Fields(BaseModel):
    """Every kind of field."""

    needed: int = Field(ge=1, description="How many")
    empty: str = Field(default="", max_length=9)
    filled: str = "x"
    zero: int = 0
    off: bool = False
    none: list[str] = Field(default=[], max_length=3)
    open: str | None = None
    either: int | str | None = None
    named: str | None = "x"


@pytest.mark.requirement("CTX-12")
def test_a_field_is_told_by_its_type_and_by_a_default_that_says_something() -> None:
    schema = of_arguments(Fields.model_json_schema())
    text = {"type": "string"}
    assert schema == {
        "type": "object",
        "required": ["needed"],
        "properties": {
            "needed": {"type": "integer", "description": "How many"},
            "empty": text,
            "filled": {**text, "default": "x"},
            "zero": {"type": "integer", "default": 0},
            "off": {"type": "boolean", "default": False},
            "none": {"type": "array", "items": text},
            "open": text,
            "either": {"anyOf": [{"type": "integer"}, text, {"type": "null"}]},
            "named": {"anyOf": [text, {"type": "null"}], "default": "x"},
        },
    }
