"""Checks of expected tool calls by the tools' declarations.

Schemas are JSON schemas with types in lower case, or in upper case as in genai. Unknown keywords and invalid
references allow every value.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from evaltui.core.model.json_values import ABSENT, list_or_empty, side_by_side
from evaltui.core.model.problems import JsonPath, Problem
from evaltui.text.figures import show_number
from evaltui.text.values import did_you_mean, show_value, type_change, value_in_words

if TYPE_CHECKING:
    from jsonschema import ValidationError

Schema = Mapping[str, Any]

# Tools that ADK gives to agents by itself, so that no agent declares them.
_FRAMEWORK_TOOLS = frozenset(
    {
        "adk_request_confirmation",
        "adk_request_credential",
        "adk_request_input",
        "set_model_response",
        "transfer_to_agent",
    }
)
_MAX_CHOICES = 6
_MAX_DEPTH = 32
# As JSON schema names the types, and what a value of it is called.
_TYPES = {
    "string": "a string",
    "number": "a number",
    "integer": "an integer",
    "boolean": "true or false",
    "object": "an object",
    "array": "a list",
    "null": "null",
}


def check_call(name: str, args: Any, tools: Sequence[DeclaredTool]) -> list[Problem]:
    """The problems of a call, with paths from its arguments; `()` is the call itself.

    Without any tools there are no problems. An argument that the schema does not have is a warning unless the
    schema forbids further arguments, because most tools ignore it or fail.
    """
    if not tools or name in _FRAMEWORK_TOOLS:
        return []
    tool = next((tool for tool in tools if tool.name == name), None)
    if tool is None:
        return [Problem.error((), _unknown_tool(name, [tool.name for tool in tools]))]
    if tool.parameters is None:
        return []
    arguments = {} if args is None else args
    if not isinstance(arguments, dict):
        return [Problem.error((), f"the arguments must be an object, are {value_in_words(arguments)}")]
    return tool.check.problems(arguments)


def check_value(schema: Schema, value: Any) -> list[Problem]:
    """The problems of a value by a schema; `()` is the value itself."""
    return _Check(schema).problems(value)


def check_state(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Problem]:
    """Warnings for keys of the state whose value changed its JSON type; null matches every type."""
    return [
        Problem.warning(
            path, f"becomes {_article(kind)}, was {_article(type_change(new, old))}: {show_value(old)}"
        )
        for path, old, new in side_by_side(before, after, lists=False)
        if ABSENT not in (old, new) and (kind := type_change(old, new))
    ]


def _unknown_tool(name: str, tool_names: Sequence[str]) -> str:
    if not name:
        return "the call names no tool"
    hint = did_you_mean(name, tool_names)
    if not hint and len(tool_names) <= _MAX_CHOICES:
        hint = f". Its tools: {', '.join(tool_names)}"
    return f"the agent has no tool {name!r}{hint}"


class _Check:
    """A tool's schema in JSON schema's spelling, with descriptions for sentences."""

    def __init__(self, schema: Schema, *, warns: bool = False) -> None:
        from jsonschema import Draft202012Validator

        self._root = schema
        self._definitions: dict[str, dict[str, Any]] = {}
        self._numbers: dict[tuple[str, bool], str] = {}
        whole = self._translate(schema, warns=warns, is_root=True)
        self._validator = Draft202012Validator({**whole, "$defs": self._definitions})

    def problems(self, value: Any) -> list[Problem]:
        errors: list[Any] = []
        # A schema that contains itself, or a value that is nested without end: what was found holds.
        with suppress(RecursionError):
            errors.extend(self._validator.iter_errors(value))
        return list(dict.fromkeys(_problems(errors)))

    def _translate(
        self, schema: Any, *, warns: bool, is_root: bool = False, depth: int = 0
    ) -> dict[str, Any]:
        """The schema in JSON schema's own spelling, without unknown keywords.

        The `description` of each part is the expected value in words. With `warns`, unknown members are also
        found where they are allowed.
        """
        schema, reference = self._resolve(schema)
        described = {"description": _expected_value(schema)}
        if depth > _MAX_DEPTH:
            return described
        if reference:
            return described | {"$ref": f"#/$defs/{self._define(schema, reference, warns=warns)}"}
        translated = described | _kinds_and_choices(schema)
        all_of, any_of = (
            _list(schema, "allOf"),
            [subschema for name in _ALTERNATIVE_KEYS for subschema in _list(schema, name)],
        )
        # What one part does not know, another may: only where there is a single one is it unknown.
        part = partial(self._translate, warns=warns and len(all_of) == 1, depth=depth + 1)
        translated |= {"allOf": [part(subschema) for subschema in all_of]} if all_of else {}
        part = partial(self._translate, warns=False, depth=depth + 1)
        translated |= {"anyOf": [part(subschema) for subschema in any_of]} if any_of else {}
        part = partial(self._translate, warns=warns, depth=depth + 1)
        if "items" in schema:
            translated["items"] = part(schema["items"])
        translated |= self._members(schema, part, warns=warns, is_root=is_root)
        if schema.get("nullable") is True:
            return described | {"if": {"type": "null"}, "else": translated}
        return translated

    def _members(
        self, schema: Schema, part: Callable[[Any], dict[str, Any]], *, warns: bool, is_root: bool
    ) -> dict[str, Any]:
        properties = _object(schema, "properties")
        members: dict[str, Any] = {
            "required": [name for name in _list(schema, "required") if isinstance(name, str)],
            "properties": {name: part(subschema) for name, subschema in properties.items()},
        }
        further = schema.get("additionalProperties", schema.get("additional_properties"))
        if isinstance(further, Mapping):
            members["additionalProperties"] = part(further)
        elif further is False:
            members["additionalProperties"] = False
        elif further is None and warns and (properties or is_root):
            members |= {"additionalProperties": False, "$comment": _OPEN_MEMBER}
        return members

    def _define(self, schema: Schema, reference: str, *, warns: bool) -> str:
        """The name of the definition for a reference."""
        if (reference, warns) not in self._numbers:
            number = self._numbers[reference, warns] = str(len(self._numbers))
            self._definitions[number] = self._translate(schema, warns=warns, is_root=schema is self._root)
        return self._numbers[reference, warns]

    def _resolve(self, schema: Any) -> tuple[Schema, str]:
        """A schema with its reference resolved, and the reference; {} for an unreadable schema."""
        last_reference = ""
        for _ in range(_MAX_DEPTH):
            if not isinstance(schema, Mapping):
                return {}, ""
            reference = schema.get("$ref", schema.get("ref"))
            if not isinstance(reference, str):
                return schema, last_reference
            schema, last_reference = _target(self._root, reference), reference
        return {}, ""


_ALTERNATIVE_KEYS = ("anyOf", "any_of", "oneOf")
# Marks a schema whose members are not all known, though it forbids no others.
_OPEN_MEMBER = "open"
# Of several findings at one place those that come first here say all.
_RANKS = {"type": 0, "enum": 1}


def _problems(errors: Sequence[ValidationError]) -> Iterator[Problem]:
    """The errors of jsonschema as problems, with paths from the value."""
    ranks: dict[JsonPath, int] = {}
    for error in errors:
        path = tuple(error.relative_path)
        ranks[path] = min(_rank(error), ranks.get(path, len(_RANKS)))
    for error in errors:
        path = tuple(error.relative_path)
        if _rank(error) == ranks[path]:
            for problem in _error_problems(error):
                yield replace(problem, path=(*path, *problem.path))


def _rank(error: ValidationError) -> int:
    return _RANKS.get(str(error.validator), len(_RANKS))


def _error_problems(error: ValidationError) -> Iterator[Problem]:
    """The problems of one error, with paths from its place."""
    schema: Any = error.schema
    value: Any = error.instance
    members = _object(schema, "properties")
    match error.validator:
        case "type" | "enum":
            texts = [choice for choice in _list(schema, "enum") if isinstance(choice, str)]
            hint = did_you_mean(value, texts) if isinstance(value, str) and error.validator == "enum" else ""
            hint = hint or _unquote_advice(error)
            yield Problem.error((), f"must be {schema['description']}, is {value_in_words(value)}{hint}")
        case "required":
            for name in schema["required"]:
                if name not in value:
                    words = members.get(name, {}).get("description")
                    yield Problem.error((name,), f"missing; must be {words}" if words else "missing")
        case "additionalProperties":
            kind = Problem.warning if schema.get("$comment") == _OPEN_MEMBER else Problem.error
            for name in value:
                if name not in members:
                    absent = [member for member in members if member not in value]
                    yield kind((name,), f"unknown argument{did_you_mean(name, absent)}")
        case "anyOf":
            yield from _no_alternative(error)


def _unquote_advice(error: ValidationError) -> str:
    """Advice for a string that contains the expected value: `. Change "19" to 19`; "" for others."""
    from jsonschema import Draft202012Validator

    if error.validator != "type" or not isinstance(error.instance, str):
        return ""
    try:
        value = json.loads(error.instance)
    except ValueError:
        return ""
    fits = Draft202012Validator({"type": error.validator_value}).is_valid(value)
    return f". Change {show_value(error.instance)} to {show_value(value)}" if fits else ""


def _no_alternative(error: ValidationError) -> Iterator[Problem]:
    of_each: dict[Any, list[ValidationError]] = {}
    for cause in error.context or ():
        of_each.setdefault(cause.relative_schema_path[0], []).append(cause)
    problem_lists = [list(_problems(errors)) for errors in of_each.values()]
    # The alternative that was meant has the right type, and something wrong deeper inside.
    deeper = [problems for problems in problem_lists if all(problem.path for problem in problems)]
    if len(deeper) == 1:
        yield from deeper[0]
        return
    alternatives: Any = error.validator_value
    expected = " or ".join(
        dict.fromkeys(filter(None, (alternative["description"] for alternative in alternatives)))
    )
    yield Problem.error(
        (), f"must be {expected}, is {value_in_words(error.instance)}" if expected else "fits no alternative"
    )


def _kinds(schema: Schema) -> list[str]:
    """The types that a schema allows; [] where it allows all, or has unknown ones."""
    kinds = _declared_kinds(schema)
    return kinds if all(kind in _TYPES for kind in kinds) else []


def _declared_kinds(schema: Schema) -> list[str]:
    declared = schema.get("type")
    return [str(kind).lower() for kind in (declared if isinstance(declared, list) else [declared])]


def _choices(schema: Schema) -> list[Any]:
    return [schema["const"]] if "const" in schema else _list(schema, "enum")


def _kinds_and_choices(schema: Schema) -> dict[str, Any]:
    kinds, choices = _kinds(schema), _choices(schema)
    # Schemas that were widened by null often leave it out of the choices.
    allowed = [*choices, None] if "null" in kinds else choices
    return ({"type": kinds} if kinds else {}) | ({"enum": allowed} if choices else {})


def _expected_value(schema: Schema) -> str:
    """The expected value in words; "" for any value."""
    choices, kinds = _choices(schema), _kinds(schema)
    if choices:
        shown = [show_value(choice) for choice in choices[:_MAX_CHOICES]]
        more = [f"{show_number(len(choices) - _MAX_CHOICES)} more"] if len(choices) > _MAX_CHOICES else []
        return " or ".join([*shown, *more])
    kinds += ["null"] if kinds and schema.get("nullable") is True else []
    return " or ".join(dict.fromkeys(_TYPES[kind] for kind in kinds))


def _list(schema: Schema, name: str) -> list[Any]:
    return list_or_empty(schema.get(name))


def _object(schema: Schema, name: str) -> Mapping[str, Any]:
    value = schema.get(name)
    return value if isinstance(value, Mapping) else {}


def _article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


# Schemas may contain themselves.
_MAX_INLINE_DEPTH = 8
_EMPTY: dict[str, Any] = {
    "string": "",
    "integer": 0,
    "number": 0,
    "boolean": False,
    "array": [],
    "object": {},
}


def inline_references(schema: Any, root: Mapping[str, Any], depth: int = 0) -> Any:
    """A schema with its references replaced by their targets in `root`; {} beyond a maximum depth."""
    if isinstance(schema, list):
        return [inline_references(subschema, root, depth) for subschema in schema]
    if not isinstance(schema, Mapping):
        return schema
    if depth > _MAX_INLINE_DEPTH:
        return {}
    if isinstance(reference := schema.get("$ref", schema.get("ref")), str):
        target = _target(root, reference)
        return {} if target is root else inline_references(target, root, depth + 1)
    return {name: inline_references(subschema, root, depth + 1) for name, subschema in schema.items()}


def _target(root: Any, reference: str) -> Any:
    """The target of a reference in a schema; None for an invalid reference."""
    for step in reference.removeprefix("#").strip("/").split("/") if reference != "#" else ():
        name = step.replace("~1", "/").replace("~0", "~")
        root = root.get(name) if isinstance(root, Mapping) else None
    return root


def kinds_of(schema: Any) -> set[str]:
    """The JSON types that a schema allows at its top level."""
    if not isinstance(schema, Mapping):
        return set()
    if schema.get("type") is None:
        return {kind for alternative in _alternatives(schema) for kind in kinds_of(alternative)}
    return {*_declared_kinds(schema)}


def _alternatives(schema: Mapping[str, Any]) -> list[Any]:
    return list_or_empty(schema.get("anyOf", schema.get("any_of")))


def member_schema(schema: Any, step: str | int) -> Any:
    """The schema of a member of an object or array; None where it is unknown."""
    if not isinstance(schema, Mapping):
        return None
    if isinstance(step, int) and schema.get("items") is not None:
        return schema["items"]
    if isinstance(step, str) and step in properties_of(schema):
        return properties_of(schema)[step]
    return next(
        (
            member
            for alternative in _alternatives(schema)
            if (member := member_schema(alternative, step)) is not None
        ),
        None,
    )


def properties_of(schema: Any) -> Mapping[str, Any]:
    """The known members of an object by name."""
    if not isinstance(schema, Mapping):
        return {}
    if isinstance(members := schema.get("properties"), Mapping):
        return members
    return next(
        (members for alternative in _alternatives(schema) if (members := properties_of(alternative))), {}
    )


def first_value(schema: Any, depth: int = 0) -> Any:
    """An initial value by a schema: its default, its first choice, or an empty value of its type; an object
    gets its required members."""
    if isinstance(schema, Mapping):
        if schema.get("default") is not None:
            return schema["default"]
        if isinstance(choices := schema.get("enum"), list) and choices:
            return choices[0]
    kinds = kinds_of(schema)
    kind = next((kind for kind in _EMPTY if kind in kinds), "string")
    required = schema.get("required") if isinstance(schema, Mapping) else None
    if kind == "object" and isinstance(required, list) and depth < _MAX_INLINE_DEPTH:
        properties = properties_of(schema)
        return {name: first_value(properties[name], depth + 1) for name in required if name in properties}
    return copy(_EMPTY[kind])


@dataclass(frozen=True)
class DeclaredTool:
    """A tool of an agent, from the metadata of its host."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] | None = None
    """The JSON schema of its arguments; None where it is unknown."""

    @cached_property
    def check(self) -> _Check:
        return _Check(self.parameters or {}, warns=True)

    @cached_property
    def properties(self) -> Mapping[str, Any]:
        """The schema of each argument, with references replaced."""
        members = (self.parameters or {}).get("properties")
        if not isinstance(members, Mapping):
            return {}
        return {name: inline_references(schema, self.parameters or {}) for name, schema in members.items()}

    @property
    def required(self) -> list[str]:
        return [name for name in _list(self.parameters or {}, "required") if isinstance(name, str)]


def declared_tools(agent: Mapping[str, Any] | None) -> list[DeclaredTool]:
    """The tools in an agent's metadata from its host."""
    return [
        DeclaredTool(str(tool["name"]), str(tool.get("description") or ""), tool.get("parameters"))
        for tool in (agent or {}).get("tools") or ()
    ]
