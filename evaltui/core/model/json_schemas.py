"""JSON Schemas of users (draft 2020-12), which values fit or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from .json_values import ABSENT, object_or_empty, value_at, values_in
from .problems import format_path, likely_typos
from .regexes import Patience, check_regex

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

Schema = Mapping[str, Any]
# Keywords with values, and keywords with schemas by names of the user's.
_OF_VALUES = ("const", "enum", "default", "example", "examples", "dependentRequired", "required")
_OF_NAMES = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
# Keywords of OpenAPI and of annotations, which resemble those that decide.
_OTHER_KEYWORDS = ("example", "examples", "definitions", "description", "title", "deprecated", "nullable")


def check_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema. Raises ValueError for a schema that cannot be decided: an invalid one, a reference to a
    schema elsewhere or to none, a misspelt keyword, a pattern that is no regular expression."""
    from jsonschema import Draft202012Validator, SchemaError

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise ValueError(f"is not a JSON Schema: {error.message}") from None
    keywords = [(name,) for name in (*Draft202012Validator.VALIDATORS, *_OTHER_KEYWORDS)]
    for part in _parts(schema):
        if typo := next(likely_typos(part, keywords), None):
            raise ValueError(f"{format_path(typo[0])}: {typo[1]}")
        for key in ("$ref", "$dynamicRef"):
            if isinstance(reference := part.get(key), str) and not _is_inside(schema, reference):
                raise ValueError(f"has the reference {reference!r}, which is not in the schema")
        if part is not schema and isinstance(part.get("$id"), str):
            raise ValueError(f"has the inner schema {part['$id']!r}; write it without $id")
        for pattern in (part.get("pattern"), *object_or_empty(part.get("patternProperties"))):
            if isinstance(pattern, str):
                check_regex(pattern)
    return schema


def _parts(value: Any) -> Iterator[dict[str, Any]]:
    """The schemas in a schema, itself first."""
    if isinstance(value, dict):
        yield value
        for name, member in value.items():
            has_names = name in _OF_NAMES and isinstance(member, dict)
            for inner in member.values() if has_names else [member] * (name not in _OF_VALUES):
                yield from _parts(inner)
    elif isinstance(value, list):
        for item in value:
            yield from _parts(item)


def _is_inside(schema: Schema, reference: str) -> bool:
    if not reference.startswith("#"):
        return False
    name = reference.removeprefix("#")
    if name.startswith("/"):
        steps = [step.replace("~1", "/").replace("~0", "~") for step in name[1:].split("/")]
        return _target(schema, steps) is not ABSENT
    anchors = ("$anchor", "$dynamicAnchor")
    return not name or any(part.get(key) == name for part in _parts(dict(schema)) for key in anchors)


def _names_in(value: Any) -> Iterator[str]:
    """The names of members of a value, at any depth."""
    return (name for _, item in values_in(value) if isinstance(item, dict) for name in item)


def _target(schema: Any, steps: list[str]) -> Any:
    for step in steps:
        schema = value_at(
            schema, (int(step) if isinstance(schema, list) and step.isdigit() else step,), ABSENT
        )
    return schema


def misfit(schema: Schema, value: Any, patience: Patience) -> str:
    """Why a value does not fit a schema, with its place; "" where it fits.

    Raises SlowRegexError for a pattern that takes too long, RecursionError for a value without end.
    """
    from jsonschema import Draft202012Validator, ValidationError, validators

    def matches(validator: Validator, pattern: str, text: Any, schema: Schema) -> Iterator[ValidationError]:
        if isinstance(text, str) and not patience.matches(pattern, text, anywhere=True):
            yield ValidationError(f"{text!r} does not match {pattern!r}")

    def divides(
        validator: Validator, factor: float, number: Any, schema: Schema
    ) -> Iterator[ValidationError]:
        # In decimals, as both are written: 0.07 is seven times 0.01.
        if validator.is_type(number, "number") and Fraction(str(number)) % Fraction(str(factor)):
            yield ValidationError(f"{number!r} is not a multiple of {factor!r}")

    # What jsonschema does with these patterns has no time limit.
    for part in _parts(schema):
        for pattern in part.get("patternProperties") or ():
            for name in _names_in(value):
                patience.matches(pattern, name, anywhere=True)
    keywords = {"pattern": matches, "multipleOf": divides}
    validator = validators.extend(Draft202012Validator, keywords)  # type: ignore[no-untyped-call]
    error = next(validator(schema).iter_errors(value), None)
    if error is None:
        return ""
    place = format_path(tuple(error.absolute_path))
    return f"{place}: {error.message}" if place else str(error.message)
