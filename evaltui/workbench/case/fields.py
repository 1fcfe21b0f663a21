"""The editable rows of a case: each row, its fields with their changes, and the operations that add to it.

Nothing here depends on a screen. The changes of a row are made with `Editing.do`. The id of a row is built
from positions, so it stays the same while a text is typed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from evaltui.core.model.json_values import both_spellings, object_or_empty
from evaltui.core.model.problems import JsonPath, Problem, format_path
from evaltui.core.model.renaming import NameKind
from evaltui.core.model.tool_schema import DeclaredTool, kinds_of
from evaltui.documents.editing.set import CaseEditor, EditBuilder
from evaltui.documents.json_text import duplicate_keys, locate, parse
from evaltui.documents.values import remove

RowId = tuple[str | int, ...]
Kind = Literal["line", "string", "text", "value", "json"]
Part = Literal["value", "name"]
CasePart = Literal["value", "name", "json"]
DraftPart = Literal["value", "name", "json", "file"]
Role = Literal["fact", "part", "turn", "call", "argument", "response", "hint", "section"]

# How the message of a syntax error ends.
_PLACE = re.compile(r" \(column (\d+)\)$")
# A longer text is not to be read in one line.
_MAX_LINE_LENGTH = 100


class FieldError(ValueError):
    """Why a field cannot hold a text, as a sentence."""

    def __init__(self, text: str, place: tuple[int, int] | None = None) -> None:
        super().__init__(text)
        self.place = place
        """Line and column of the error in the text, 0-based; None where it has no single place."""


@dataclass(frozen=True)
class Completion:
    """A text that is proposed for a field."""

    text: str
    detail: str = ""
    """A description of the text."""


@dataclass(frozen=True)
class Operation:
    """An operation that is possible at a row."""

    label: str
    """An imperative: `add a call`."""
    make: EditBuilder | None = None
    """The edit; None where nothing changes."""
    then: RowId | None = None
    """The row to go to afterwards."""
    opens: Part | None = None
    """The part of that row that is edited next."""
    if_changed: bool = False
    """Whether the operation is only done after its field was changed."""


@dataclass(frozen=True)
class Field:
    """An editable text."""

    label: str
    """Label of a change, an imperative."""
    text: str
    kind: Kind
    """How the text is read. `line`, `string` and `text` are taken literally; a `line` has no second line, a
    `string` is still short. A `value` is JSON where it can be read as JSON and else a text, so that texts
    need no quotes; `json` must be JSON."""
    change: Callable[[str], EditBuilder]
    """Makes the edit for a text; raises FieldError for a text that the field cannot hold."""
    completions: tuple[Completion, ...] = ()
    then: Operation | None = None
    """The next operation: the value after the name of a new member, arguments after a call."""


@dataclass(frozen=True)
class Row:
    """A line of a case: a fact, a part of a message, a turn, a call, an argument or a response."""

    id: RowId
    """Built from positions, so it stays the same when the value changes."""
    role: Role
    label: str = ""
    """Name of the kind of row: `user`, `answer`."""
    name: str = ""
    """Name of this row: that of a tool or of an argument."""
    value: Any = None
    """A text, with `is_json` any JSON value."""
    shown: str | None = None
    """The text that is shown in the place of the value."""
    is_json: bool = False
    quiet: bool = False
    """Whether it is drawn dim."""
    turn: int | None = None
    """The turn of the row, from 0; None for a row of the case as a whole."""
    field: Field | None = None
    """The field for the value; None where it cannot be edited."""
    rename: Field | None = None
    """The field for the name."""
    named: tuple[NameKind, str] | None = None
    """The tool, argument or agent on this line, which can be renamed everywhere, by its full name."""
    adds: tuple[Operation, ...] = ()
    """The operations that add something here, the most likely first."""
    insert: Operation | None = None
    duplicate: Operation | None = None
    delete: Operation | None = None
    move: Callable[[int], Operation] | None = None
    """Moves the row by a number of places, up where it is negative."""
    cycle: Operation | None = None
    """Sets the next of a few values."""
    path: JsonPath | None = None
    """Path in the set's data, to match problems."""
    findings: tuple[Problem, ...] = ()
    """The problems at the path."""
    value_path: JsonPath | None = None
    """Path of its JSON value in the set's data, for rows of its members; None where there are none."""
    schema: Any = None
    """The schema that the tool declares for the value; None where it is unknown."""
    required: bool = False
    """Whether the tool needs it."""
    level: int = 0
    """The number of objects and arrays around it, below the row of the whole value."""
    fold: Literal["open", "closed"] | None = None
    """Whether the rows inside are shown; None for a row without rows inside."""
    preview: Any = None
    """The content of a closed turn or call, in short: the user's text, the arguments."""

    def of(self, part: Part) -> Field | None:
        return self.field if part == "value" else self.rename

    @property
    def is_unset(self) -> bool:
        """Whether the field has no value yet."""
        return self.field is not None and self.quiet and self.shown is not None and not self.value

    @property
    def declared(self) -> str:
        """The declared type of the value: `string, required`; "" where it is unknown."""
        return ", ".join([*sorted(kinds_of(self.schema)), *(["required"] if self.required else [])])


@dataclass(frozen=True)
class RowSource:
    """The case, tools and problems that the rows of a case are built from."""

    editor: CaseEditor
    """The case as it is now."""
    tools: Sequence[DeclaredTool] = ()
    problems: Sequence[Problem] = ()
    """The problems of the whole set."""
    saved: Any = None
    """The case as it is on disk."""
    toggled: frozenset[RowId] | None = None
    """The rows that are not folded or open as by default; None where nothing folds."""

    @cached_property
    def tools_by_name(self) -> Mapping[str, DeclaredTool]:
        return {tool.name: tool for tool in self.tools}

    def build(self, edit: Callable[[CaseEditor], object]) -> EditBuilder:
        """An edit of this case, made later from the data of that moment."""
        number = self.editor.number
        return lambda eval_set: edit(eval_set.case(number))


# Texts and values


def text_of(value: Any) -> str:
    """The text of a value in a field of the kind `value`."""
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    try:
        is_itself = value_of(value) == value
    except FieldError:
        is_itself = False
    return value if is_itself else json.dumps(value, ensure_ascii=False)


def value_of(text: str) -> Any:
    """Reads a typed value: `19` is a number, `Kitchen` a text, `"19"` a text, too. Raises FieldError for
    broken JSON."""
    stripped = text.strip()
    if stripped[:1] in ("{", "[", '"'):
        return json_of(text)
    value = parse(stripped) if stripped else text
    if isinstance(value, Problem) or (isinstance(value, float) and not math.isfinite(value)):
        return text
    return value


def json_of(text: str) -> Any:
    """The value of a JSON text. Raises FieldError with the problem and its place."""
    if not text.strip():
        raise FieldError("Empty; use null")
    value = parse(text)
    if isinstance(value, Problem):
        raise syntax_error(value)
    if twice := duplicate_keys(text):
        [problem, *_] = locate(twice, text)
        place = (problem.line or 1) - 1, 0
        raise FieldError(f"line {place[0] + 1}: {format_path(problem.path)} is given more than once", place)
    return value


def syntax_error(problem: Problem) -> FieldError:
    """The error for a syntax problem of a JSON text."""
    place = place_in_text(problem)
    message = _PLACE.sub("", problem.message).removeprefix("not valid JSON: ").removeprefix("the file ")
    return FieldError(f"line {place[0] + 1}, column {place[1] + 1}: {message}" if place else message, place)


def place_in_text(problem: Problem) -> tuple[int, int] | None:
    """Line and column of a problem in a JSON text, 0-based; None where it has no single place."""
    if problem.line is None:
        return None
    column = _PLACE.search(problem.message)
    return problem.line - 1, int(column[1]) - 1 if column else 0


def object_of(text: str) -> dict[str, Any]:
    value = json_of(text)
    if not isinstance(value, dict):
        raise FieldError("Must be a JSON object: { … }")
    return value


def required_text(what: str) -> Callable[[str], str]:
    def check(text: str) -> str:
        if not text:
            raise FieldError(f"{what} is missing")
        return text

    return check


def value_field(label: str, value: Any, put: Callable[[Any], EditBuilder], schema: Any = None) -> Field:
    """The field that edits a JSON value, chosen by the value and by the schema of its tool."""
    kind, choices = _kind_of(value, schema), completions_of(schema)
    match kind:
        case "json":
            text = json.dumps(value, ensure_ascii=False, indent=2)
            return Field(label, text, kind, lambda typed: put(_nested_of(typed, value)))
        case "value":
            return Field(label, text_of(value), kind, lambda typed: put(value_of(typed)), choices)
        case _:
            return Field(label, value, kind, put, choices if kind == "string" else ())


def _nested_of(text: str, value: Any) -> Any:
    """The value of a JSON text in the field of a list or an object. What is wrong comes with an example."""
    try:
        return json_of(text)
    except FieldError as error:
        example = '["a", "b"]' if isinstance(value, list) else '{"key": "value"}'
        raise FieldError(f"{error}. Write JSON such as {example}", error.place) from None


def _kind_of(value: Any, schema: Any) -> Kind:
    if isinstance(value, dict | list):
        return "json"
    if isinstance(value, str) and ("\n" in value or len(value) > _MAX_LINE_LENGTH):
        return "text"
    return "string" if isinstance(value, str) and kinds_of(schema) == {"string"} else "value"


# What a tool's schema says


def completions_of(schema: Any) -> tuple[Completion, ...]:
    if not isinstance(schema, Mapping):
        return ()
    if isinstance(choices := schema.get("enum"), list):
        return tuple(Completion(text_of(choice)) for choice in choices)
    return (Completion("true"), Completion("false")) if kinds_of(schema) == {"boolean"} else ()


# What nobody knows is kept, and shown


def unknown_fields(holder: Any, names: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """The members of an object that have none of these names, in either spelling."""
    expected = both_spellings(names)
    for key, value in object_or_empty(holder).items():
        if key not in expected:
            yield key, value


def remove_member(path: JsonPath) -> Operation:
    return Operation(f"remove {path[-1]}", lambda eval_set: remove(eval_set.data, path))


# Problems at their rows


def with_problems(rows: Sequence[Row], problems: Sequence[Problem]) -> list[Row]:
    """The rows, each with the problems inside it that are in no smaller row."""
    by_row: dict[int, list[Problem]] = {}
    for problem in problems:
        holding = [
            (len(row.path), -number)
            for number, row in enumerate(rows)
            if row.path is not None and problem.path[: len(row.path)] == row.path
        ]
        if holding:
            by_row.setdefault(-max(holding)[1], []).append(problem)
    return [
        replace(row, findings=(*row.findings, *by_row[number])) if number in by_row else row
        for number, row in enumerate(rows)
    ]
