"""Which member of a row is what in an eval case: chosen by the user, or proposed by the keys of the rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evaltui.core.model.arg_rule import ANY_INDEX, parse_arg_path
from evaltui.core.model.json_values import ABSENT
from evaltui.core.model.problems import JsonPath, format_path
from evaltui.exchange.imported import Json, UnusableSourceError
from evaltui.exchange.row_files import Row, json_in
from evaltui.text.figures import short_list
from evaltui.text.values import did_you_mean

FIELDS: Mapping[str, str] = {
    "id": "Id of the case",
    "user": "Message of the user; in a CSV cell, blank lines separate turns",
    "messages": "Conversation: messages of OpenAI, Anthropic, LangChain or genai",
    "expected": "Expected response, a text or messages; a list of texts has one for each turn",
    "calls": "Expected calls: names, or objects with name and arguments; an empty list expects none",
    "state": "Session state before the first turn, an object",
    "tag": "Tags of the case; may be repeated",
    "ignore": "Member that is left out on purpose; may be repeated",
}
"""Fields of a mapping with their meanings."""
REPEATED = ("tag", "ignore")
_SAMPLED = 20


@dataclass(frozen=True)
class RowMapping:
    """Paths of rows by field, as in rules: `inputs.question`, `items[0]`, `['a.b']`."""

    paths: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> RowMapping:
        """A mapping from its form in a config, a path or a list of paths by field."""
        return cls({name: (path,) if isinstance(path, str) else tuple(path) for name, path in data.items()})

    @property
    def data(self) -> dict[str, Any]:
        """The form in a config."""
        return {
            name: list(paths) if len(paths) > 1 else paths[0] for name, paths in self.paths.items() if paths
        }

    def with_fields(self, other: RowMapping) -> RowMapping:
        """The mapping, in which fields of another replace its own."""
        return RowMapping({**self.paths, **other.paths})

    def value(self, name: str, row: Json) -> Any:
        """The value of a field in a row; None where it is absent or not mapped."""
        paths = self.paths.get(name, ())
        return row_value(row, paths[0]) if paths else None

    def place(self, name: str, row: Json) -> JsonPath:
        """The path of the value of a field in a row; the field's name where it is not mapped."""
        return row_steps(row, self.paths.get(name, (name,))[0])

    def unmapped(self, row: Json) -> Iterator[JsonPath]:
        """The paths of the members of a row with a value that no field takes."""
        return _unmapped(row, (), {row_steps(row, path) for paths in self.paths.values() for path in paths})


def parse_mapping(words: Sequence[str]) -> RowMapping:
    """A mapping from texts `FIELD=PATH`. Raises ValueError, with a sentence."""
    paths: dict[str, tuple[str, ...]] = {}
    for word in words:
        name, equals, path = word.partition("=")
        if not equals or not path:
            raise ValueError(f"{word!r} is not FIELD=PATH, e.g. user=inputs.question")
        if name not in FIELDS:
            hint = did_you_mean(name, FIELDS) or f"; fields are {', '.join(FIELDS)}"
            raise ValueError(f"no field {name!r}{hint}")
        if name in paths and name not in REPEATED:
            raise ValueError(f"the field {name} is given twice")
        paths[name] = (*paths.get(name, ()), path)
    return RowMapping(paths)


def row_value(row: Json, path: str, absent: Any = None) -> Any:
    """The value at a path of a row, or `absent`; objects and lists in texts are parsed on the way."""
    value: Any = row
    for step in row_steps(row, path):
        value = json_in(value)
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else absent
        else:
            value = value.get(step, absent) if isinstance(value, dict) else absent
    return value


def row_steps(row: Json, path: str) -> JsonPath:
    """The steps of a path in a row; the name of a column may have dots and spaces in it."""
    if path in row:
        return (path,)
    try:
        steps = parse_arg_path(path)
    except ValueError:
        return (path,)
    return tuple(0 if step is ANY_INDEX else step for step in steps)


def _unmapped(value: Any, path: JsonPath, mapped: set[JsonPath]) -> Iterator[JsonPath]:
    if path in mapped or value in (None, "", [], {}):
        return
    inside = any(other[: len(path)] == path for other in mapped)
    opened = json_in(value)
    if inside and isinstance(opened, dict):
        for name, member in opened.items():
            yield from _unmapped(member, (*path, name), mapped)
    else:
        yield path


# Proposals


@dataclass(frozen=True)
class Shape:
    """The form of rows of a tool: the members that all of its rows have."""

    name: str
    keys: frozenset[str]
    inputs: str = ""
    """Member with the user's message, or around it; "" for the row itself."""
    outputs: str = ""
    """Member with the expected response, or around it."""


SHAPES = (
    Shape("OpenAI chat", frozenset(("messages",))),
    Shape("OpenAI evals", frozenset(("item",)), "item", "item"),
    Shape("LangSmith", frozenset(("inputs", "outputs")), "inputs", "outputs"),
    Shape("LangSmith", frozenset(("inputs", "reference_outputs")), "inputs", "reference_outputs"),
    Shape("Langfuse", frozenset(("input", "expectedOutput")), "input", "expectedOutput"),
    Shape("Braintrust", frozenset(("input", "expected")), "input", "expected"),
    Shape("Phoenix", frozenset(("input", "output")), "input", "output"),
    Shape("columns", frozenset()),
)
"""The first shape whose keys a row has is taken."""
_REFERENCES = (
    *("expected", "expected_output", "expected_outputs", "expectedOutput", "expected_response"),
    *("expected_answer", "reference_outputs", "reference_output", "reference_answer", "reference"),
    *("ground_truth", "ground_truths", "ideal", "target", "expectations", "correct_answer", "label"),
)
_NAMES: Mapping[str, tuple[str, ...]] = {
    "messages": ("messages", "conversation"),
    "user": (
        *("question", "query", "prompt", "instruction", "input", "message", "user_input", "user_message"),
        *("text", "content", "user"),
    ),
    # What only a reference is called, then what an agent may have answered.
    "expected": (*_REFERENCES, "answer", "output", "response", "completion", "messages", "text", "content"),
    "calls": ("expected_calls", "expected_tool_calls", "calls", "tool_calls", "trajectory"),
    "state": ("state", "initial_state"),
    "id": ("id", "eval_id", "case_id", "example_id", "uuid"),
}
_TAGS = ("tags", "tag", "metadata.tags", "split", "metadata.split")
"""Names of members that are proposed for each field, the likeliest first."""


def propose(rows: Sequence[Row]) -> tuple[str, RowMapping]:
    """The name of the shape that rows have, and a mapping as far as their keys tell."""
    sample = [row.values for row in rows[:_SAMPLED]]
    keys = frozenset(key for row in sample for key in row)
    shape = next(shape for shape in SHAPES if shape.keys <= keys)
    paths: dict[str, tuple[str, ...]] = {}
    for name, place in (("messages", shape.inputs), ("user", shape.inputs), ("state", shape.inputs)):
        if name != "user" or "messages" not in paths:
            _add(paths, name, _path_in(sample, place, name))
    # Beside a reference, outputs are what an agent answered.
    outputs = next((name for name in _REFERENCES if _has(sample, name)), shape.outputs)
    for name in ("expected", "calls"):
        _add(paths, name, _path_in(sample, outputs, name), paths.get("user"), paths.get("messages"))
    if outputs in _REFERENCES:
        _add(paths, "expected", outputs)
    _add(paths, "id", _path_in(sample, "", "id"))
    _add(paths, "id", _path_in(sample, shape.inputs, "id"))
    for name in ("calls", "state"):
        _add(paths, name, _path_in(sample, "", name), paths.get("user"), paths.get("messages"))
    _add(paths, "tag", next((path for path in _TAGS if _has(sample, path)), None))
    return shape.name, RowMapping(paths)


def _add(
    paths: dict[str, tuple[str, ...]], name: str, path: str | None, *used: tuple[str, ...] | None
) -> None:
    if path is not None and name not in paths and (path,) not in used:
        paths[name] = (path,)


def _path_in(rows: Sequence[Json], place: str, name: str) -> str | None:
    """The path of a field in a member of rows, or that member itself; None where it does not tell."""
    values = [json_in(row_value(row, place) if place else row) for row in rows]
    value = next((value for value in values if value not in (None, "", [], {})), None)
    if not isinstance(value, dict):
        is_messages = isinstance(value, list) and any(isinstance(item, dict) for item in value)
        is_field = name == ("messages" if is_messages else "user") or name == "expected"
        return place if value is not None and is_field else None
    if place and name == "expected" and {"role", "content"} <= value.keys():
        return place
    prefix = f"{place}." if place else ""
    for member in _NAMES[name]:
        present = [item for item in values if isinstance(item, dict) and member in item]
        samples = [json_in(item[member]) for item in present if item[member] not in (None, "")]
        if samples and _fits(name, samples[0]):
            return prefix + member
    texts = [key for key, member in value.items() if isinstance(member, str)]
    return (
        prefix + texts[0]
        if place and name in ("user", "expected") and len(value) == len(texts) == 1
        else None
    )


def _fits(name: str, value: Any) -> bool:
    if name == "messages":
        return isinstance(value, list)
    if name == "calls":
        return isinstance(value, list | str)
    if name == "state":
        return isinstance(value, dict)
    return name == "expected" or not isinstance(value, dict | list)


def _has(rows: Sequence[Json], path: str) -> bool:
    return any(row_value(row, path) for row in rows)


def require_message(mapping: RowMapping, rows: Sequence[Row], file: str) -> None:
    """Raises UnusableSourceError where no path of the user's messages is known, or a path is in no row."""
    for name, paths in mapping.paths.items():
        for path in paths:
            if all(row_value(row.values, path, ABSENT) is ABSENT for row in rows):
                names = [format_path(place) for place in _members(rows)]
                hint = did_you_mean(path, names) or f"; there are {short_list(names, 10)}"
                raise UnusableSourceError(f"{file}: {name}={path} is in no row{hint}")
    if not {"user", "messages"} & mapping.paths.keys():
        names = [format_path(place) for place in _members(rows)]
        raise UnusableSourceError(
            f"{file}: the member with the user's message is not known; name it with --map user=PATH. "
            f"Members: {short_list(names, 10)}"
        )


def _members(rows: Sequence[Row]) -> list[JsonPath]:
    """The paths of the members of rows, two levels deep."""
    paths: dict[JsonPath, None] = {}
    for row in rows[:_SAMPLED]:
        for name, value in row.values.items():
            inner = json_in(value)
            if isinstance(inner, dict) and inner:
                paths |= {(name, member): None for member in inner}
            else:
                paths[(name,)] = None
    return list(paths)
