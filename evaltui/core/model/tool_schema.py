"""What cannot be right in an expected tool call, going by what the agent's tools declare.

Schemas are JSON schemas, in lower case as JSON schema has its types or in upper case as genai has them. A
keyword that is not known here, and a reference that leads nowhere, allows everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from evaltui.core.model.problems import JsonPath, Problem, Severity
from evaltui.text.values import show_value, type_change
from evaltui.text.wording import did_you_mean, in_words

Schema = Mapping[str, Any]

# Tools that ADK gives to agents by itself, so that no agent declares them.
_OF_THE_FRAMEWORK = frozenset(
    {
        "adk_request_confirmation",
        "adk_request_credential",
        "adk_request_input",
        "set_model_response",
        "transfer_to_agent",
    }
)
_MOST_CHOICES = 6
_DEEPEST = 32


@dataclass(frozen=True)
class Tool:
    """A tool as an agent declares it; `parameters` is its JSON schema, None where that is not known."""

    name: str
    parameters: Schema | None = None


def check_call(name: str, args: Any, tools: Sequence[Tool]) -> list[Problem]:
    """Every problem of a call, at paths from its arguments; `()` is the call itself.

    Without any tools nothing is known, so nothing is wrong. An argument that the schema does not know is a
    warning where further ones are not forbidden: most tools do without it or fail.
    """
    if not tools or name in _OF_THE_FRAMEWORK:
        return []
    tool = next((tool for tool in tools if tool.name == name), None)
    if tool is None:
        return [_error((), _unknown_tool(name, [tool.name for tool in tools]))]
    if tool.parameters is None:
        return []
    given = {} if args is None else args
    if not isinstance(given, dict):
        return [_error((), f"the arguments must be an object, are {in_words(given)}")]
    return list(_Check(tool.parameters).members(tool.parameters, given, (), 0))


def check_value(schema: Schema, value: Any) -> list[Problem]:
    """What a schema does not allow in a value; `()` is the value itself."""
    return [one for one in _Check(schema).value(schema, value, (), 0) if one.severity is Severity.ERROR]


def check_state(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Problem]:
    """Warnings for keys of the state whose value is of another JSON type afterwards; null is of any."""
    return list(_changed_types(before, after, ()))


def _changed_types(before: Mapping[str, Any], after: Mapping[str, Any], path: JsonPath) -> Iterator[Problem]:
    for key, old in before.items():
        if key not in after:
            continue
        new = after[key]
        if isinstance(old, dict) and isinstance(new, dict):
            yield from _changed_types(old, new, (*path, key))
        elif kind := type_change(old, new):
            was = type_change(new, old)
            yield _warning((*path, key), f"becomes {_article(kind)}, was {_article(was)}: {show_value(old)}")


def _unknown_tool(name: str, known: Sequence[str]) -> str:
    if not name:
        return "the call names no tool"
    hint = did_you_mean(name, known)
    if not hint and len(known) <= _MOST_CHOICES:
        hint = f"; it has {', '.join(known)}"
    return f"the agent has no tool {name!r}{hint}"


class _Check:
    """One schema and what its references point to."""

    def __init__(self, root: Schema) -> None:
        self._root = root

    def members(
        self, schema: Schema, given: Mapping[str, Any], path: JsonPath, depth: int
    ) -> Iterator[Problem]:
        properties = _object(schema, "properties")
        required = schema.get("required")
        for name in required if isinstance(required, list) else []:
            if isinstance(name, str) and name not in given:
                kind = _wanted(self._resolved(properties.get(name)))
                yield _error((*path, name), f"missing; must be {kind}" if kind else "missing")
        further = schema.get("additionalProperties", schema.get("additional_properties"))
        for name, value in given.items():
            if name in properties:
                yield from self.value(properties[name], value, (*path, name), depth + 1)
            elif isinstance(further, Mapping):
                yield from self.value(further, value, (*path, name), depth + 1)
            elif further is False or (further is None and (properties or not path)):
                absent = [one for one in properties if one not in given]
                message = f"unknown argument{did_you_mean(name, absent)}"
                yield _error((*path, name), message) if further is False else _warning((*path, name), message)

    def value(self, schema: Any, value: Any, path: JsonPath, depth: int) -> Iterator[Problem]:
        schema = self._resolved(schema)
        if not schema or depth > _DEEPEST:
            return
        if value is None and schema.get("nullable") is True:
            return
        kinds = _kinds(schema)
        if kinds and not any(_IS_KIND[kind](value) for kind in kinds):
            yield _error(path, f"must be {_wanted(schema)}, is {in_words(value)}")
            return
        if problem := _not_a_choice(schema, value):
            yield _error(path, problem)
            return
        yield from self._alternatives(schema, value, path, depth)
        if isinstance(value, dict):
            yield from self.members(schema, value, path, depth)
        elif isinstance(value, list) and "items" in schema:
            for index, item in enumerate(value):
                yield from self.value(schema["items"], item, (*path, index), depth + 1)

    def _alternatives(self, schema: Schema, value: Any, path: JsonPath, depth: int) -> Iterator[Problem]:
        for part in _list(schema, "allOf"):
            yield from self.value(part, value, path, depth + 1)
        either = [self._resolved(one) for name in _EITHER for one in _list(schema, name)]
        found = [list(self.value(one, value, path, depth + 1)) for one in either]
        if not found or any(not _errors(problems) for problems in found):
            return
        # The alternative that was meant has the right type, and something wrong deeper inside.
        deeper = [problems for problems in found if all(problem.path != path for problem in problems)]
        if len(deeper) == 1:
            yield from deeper[0]
            return
        wanted = " or ".join(dict.fromkeys(filter(None, map(_wanted, either))))
        yield _error(path, f"must be {wanted}, is {in_words(value)}" if wanted else "fits no alternative")

    def _resolved(self, schema: Any) -> Schema:
        """A schema with its reference followed; one that cannot be read allows everything."""
        for _ in range(_DEEPEST):
            if not isinstance(schema, Mapping):
                return {}
            reference = schema.get("$ref", schema.get("ref"))
            if not isinstance(reference, str):
                return schema
            target: Any = self._root
            for step in reference.removeprefix("#").strip("/").split("/") if reference != "#" else ():
                name = step.replace("~1", "/").replace("~0", "~")
                target = target.get(name) if isinstance(target, Mapping) else None
            schema = target
        return {}


_EITHER = ("anyOf", "any_of", "oneOf")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_integer(value: Any) -> bool:
    # JSON schema counts 3.0 as an integer.
    return _is_number(value) and value == value // 1


def _is(kind: type, value: Any) -> bool:
    return isinstance(value, kind)


_IS_KIND: dict[str, Callable[[Any], bool]] = {
    "string": partial(_is, str),
    "number": _is_number,
    "integer": _is_integer,
    "boolean": partial(_is, bool),
    "object": partial(_is, dict),
    "array": partial(_is, list),
    "null": lambda value: value is None,
}
_KIND_IN_WORDS = {
    "string": "text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "object": "an object",
    "array": "a list",
    "null": "null",
}


def _kinds(schema: Schema) -> list[str]:
    """The types that a schema allows; none where it does not say, or says what is not known here."""
    given = schema.get("type")
    kinds = [str(kind).lower() for kind in (given if isinstance(given, list) else [given])]
    return kinds if all(kind in _IS_KIND for kind in kinds) else []


def _wanted(schema: Schema) -> str:
    choices = _choices(schema)
    if choices:
        shown = [show_value(choice) for choice in choices[:_MOST_CHOICES]]
        more = [f"{len(choices) - _MOST_CHOICES} more"] if len(choices) > _MOST_CHOICES else []
        return " or ".join([*shown, *more])
    kinds = _kinds(schema) + ["null"] * (schema.get("nullable") is True)
    return " or ".join(dict.fromkeys(_KIND_IN_WORDS[kind] for kind in kinds)) if _kinds(schema) else ""


def _choices(schema: Schema) -> list[Any]:
    return [schema["const"]] if "const" in schema else _list(schema, "enum")


def _not_a_choice(schema: Schema, value: Any) -> str | None:
    choices = _choices(schema)
    if not choices or any(_same(choice, value) for choice in choices):
        return None
    # Schemas that were widened by null often leave it out of the choices.
    if value is None and "null" in _kinds(schema):
        return None
    texts = [choice for choice in choices if isinstance(choice, str)]
    hint = did_you_mean(value, texts) if isinstance(value, str) else ""
    return f"must be {_wanted(schema)}, is {in_words(value)}{hint}"


def _same(one: Any, other: Any) -> bool:
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _errors(problems: Sequence[Problem]) -> bool:
    return any(problem.severity is Severity.ERROR for problem in problems)


def _list(schema: Schema, name: str) -> list[Any]:
    value = schema.get(name)
    return value if isinstance(value, list) else []


def _object(schema: Schema, name: str) -> Mapping[str, Any]:
    value = schema.get(name)
    return value if isinstance(value, Mapping) else {}


def _article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def _error(path: JsonPath, message: str) -> Problem:
    return Problem(Severity.ERROR, path, message)


def _warning(path: JsonPath, message: str) -> Problem:
    return Problem(Severity.WARNING, path, message)
