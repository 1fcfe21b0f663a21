"""What can be edited in a case, row by row: what each row is, how its text changes, what can be added there.

Nothing here knows a screen. A row's changes are made with `Editing.do`; ids of rows count what they name, so
that they stay the same while a text is typed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from evaltui.core.model.declared_tool import DeclaredTool
from evaltui.core.model.json_values import camel
from evaltui.core.model.problems import JsonPath, Problem, format_path
from evaltui.core.model.renaming import NameKind
from evaltui.core.model.tool_values import kinds_of
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
_LONGEST_LINE = 100


class FieldError(ValueError):
    """Why a text cannot be what a field holds, as a sentence."""

    def __init__(self, text: str, place: tuple[int, int] | None = None) -> None:
        super().__init__(text)
        self.place = place
        """Line and column of it in the text, 0-based; None where there is no one place."""


@dataclass(frozen=True)
class Completion:
    """A text that is proposed for a field."""

    text: str
    detail: str = ""
    """What it stands for."""


@dataclass(frozen=True)
class Operation:
    """Something that can be done at a row."""

    label: str
    """An imperative: `add a call`."""
    make: EditBuilder | None = None
    """None where nothing changes."""
    then: RowId | None = None
    """The row to go to afterwards."""
    opens: Part | None = None
    """What of that row is edited next."""
    if_changed: bool = False
    """Whether it is only done after its field was changed."""


@dataclass(frozen=True)
class Field:
    """A text that can be edited."""

    label: str
    """What a change of it is called, an imperative."""
    text: str
    kind: Kind
    """`line`, `string` and `text` are taken as they are written; a `line` has no second one, a `string` is
    short as yet. A `value` is JSON where it reads as JSON and else a text, so that texts need no quotes;
    `json` must be JSON."""
    change: Callable[[str], EditBuilder]
    """What a text does to the data; raises FieldError for one that the field cannot hold."""
    completions: tuple[Completion, ...] = ()
    then: Operation | None = None
    """What comes after it: a value after the name of something new, arguments after a call."""


@dataclass(frozen=True)
class Row:
    """One thing that a case says."""

    id: RowId
    """The same as long as it is the same thing, whatever it says."""
    role: Role
    label: str = ""
    """What the thing is called in every case: `user`, `answer`."""
    name: str = ""
    """What it is called in this one: the name of a tool or of an argument."""
    value: Any = None
    """A text, with `is_json` any JSON value."""
    shown: str | None = None
    """What stands in the place of the value."""
    is_json: bool = False
    quiet: bool = False
    """Whether it is drawn dim."""
    turn: int | None = None
    """The turn that it belongs to, from 0; None for what is said of the case as a whole."""
    field: Field | None = None
    """How the value is edited; None where it cannot be."""
    rename: Field | None = None
    """How the name is edited."""
    named: tuple[NameKind, str] | None = None
    """The tool, argument or agent on this line, which can be renamed everywhere, by its full name."""
    adds: tuple[Operation, ...] = ()
    """What can be added here, what is most likely meant first."""
    insert: Operation | None = None
    duplicate: Operation | None = None
    delete: Operation | None = None
    move: Callable[[int], Operation] | None = None
    """How it moves by some places, up where they are negative."""
    cycle: Operation | None = None
    """What makes it the next of a few values."""
    path: JsonPath | None = None
    """Where it is in the set's data, for the problems found there."""
    findings: tuple[Problem, ...] = ()
    """The problems found there."""
    value_path: JsonPath | None = None
    """Where its JSON value is in the set's data, for rows of its members; None where there are none."""
    schema: Any = None
    """What the tool that takes the value declares of it; None where nothing is known."""
    required: bool = False
    """Whether the tool needs it."""
    level: int = 0
    """How many objects and arrays it is in, below a row that stands for itself."""
    fold: Literal["open", "closed"] | None = None
    """Whether what is in it has rows; None where nothing is."""
    preview: Any = None
    """What a closed turn or call has in it, in short: the user's text, the arguments."""

    def of(self, part: Part) -> Field | None:
        return self.field if part == "value" else self.rename

    @property
    def is_unset(self) -> bool:
        """Whether there is nothing yet of what its field would hold."""
        return self.field is not None and self.quiet and self.shown is not None and not self.value

    @property
    def declared(self) -> str:
        """What the tool declares of its value: `string, required`; "" where nothing is known."""
        return ", ".join([*sorted(kinds_of(self.schema)), *(["required"] if self.required else [])])


@dataclass(frozen=True)
class RowSource:
    """What the rows of a case are made of."""

    editor: CaseEditor
    """The case as it is now."""
    tools: Sequence[DeclaredTool] = ()
    problems: Sequence[Problem] = ()
    """Those of the whole set."""
    saved: Any = None
    """The case as it is on disk."""
    toggled: frozenset[RowId] | None = None
    """The rows that are folded otherwise than at first; None where nothing folds."""
    known: dict[Hashable, tuple[Any, list[Row]]] = field(default_factory=dict, compare=False)
    """The rows of turns: those of a turn that is the same object as before are not made again."""

    @cached_property
    def tools_by_name(self) -> Mapping[str, DeclaredTool]:
        return {tool.name: tool for tool in self.tools}

    def build(self, edit: Callable[[CaseEditor], object]) -> EditBuilder:
        """An edit of this case, to be made from the data that there is by then."""
        number = self.editor.number
        return lambda eval_set: edit(eval_set.case(number))


# Texts and values


def text_of(value: Any) -> str:
    """How a value is written in a field of the kind `value`."""
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    try:
        is_itself = value_of(value) == value
    except FieldError:
        is_itself = False
    return value if is_itself else json.dumps(value, ensure_ascii=False)


def value_of(text: str) -> Any:
    """`19` is a number, `Kitchen` a text, `"19"` a text, too. Raises FieldError for JSON with a mistake."""
    stripped = text.strip()
    if stripped[:1] in ("{", "[", '"'):
        return json_of(text)
    found = parse(stripped) if stripped else text
    if isinstance(found, Problem) or (isinstance(found, float) and not math.isfinite(found)):
        return text
    return found


def json_of(text: str) -> Any:
    """The value of a JSON text. Raises FieldError that says what is wrong, and where."""
    if not text.strip():
        raise FieldError("Empty; use null")
    found = parse(text)
    if isinstance(found, Problem):
        raise syntax_error(found)
    if twice := duplicate_keys(text):
        [problem, *_] = locate(twice, text)
        place = (problem.line or 1) - 1, 0
        raise FieldError(f"line {place[0] + 1}: {format_path(problem.path)} is given more than once", place)
    return found


def syntax_error(problem: Problem) -> FieldError:
    """What is wrong with the syntax of a JSON text."""
    place = place_in_text(problem)
    message = _PLACE.sub("", problem.message).removeprefix("not valid JSON: ").removeprefix("the file ")
    return FieldError(f"line {place[0] + 1}, column {place[1] + 1}: {message}" if place else message, place)


def place_in_text(problem: Problem) -> tuple[int, int] | None:
    """Line and column of what is wrong in a JSON text, 0-based; None where there is no one place."""
    if problem.line is None:
        return None
    column = _PLACE.search(problem.message)
    return problem.line - 1, int(column[1]) - 1 if column else 0


def object_of(text: str) -> dict[str, Any]:
    found = json_of(text)
    if not isinstance(found, dict):
        raise FieldError("Must be a JSON object: { … }")
    return found


def required_text(what: str) -> Callable[[str], str]:
    def check(text: str) -> str:
        if not text:
            raise FieldError(f"{what} is missing")
        return text

    return check


def value_field(label: str, value: Any, put: Callable[[Any], EditBuilder], schema: Any = None) -> Field:
    """How a JSON value is edited: by what it is, and by what the tool that takes it declares."""
    kind, choices = _kind_of(value, schema), completions_of(schema)
    match kind:
        case "json":
            text = json.dumps(value, ensure_ascii=False, indent=2)
            return Field(label, text, kind, lambda typed: put(json_of(typed)))
        case "value":
            return Field(label, text_of(value), kind, lambda typed: put(value_of(typed)), choices)
        case _:
            return Field(label, value, kind, put, choices if kind == "string" else ())


def _kind_of(value: Any, schema: Any) -> Kind:
    if isinstance(value, dict | list):
        return "json"
    if isinstance(value, str) and ("\n" in value or len(value) > _LONGEST_LINE):
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


def unknown_fields(holder: Any, known: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """The members of an object that have none of these names, in either spelling."""
    expected = {spelling for name in known for spelling in (name, camel(name))}
    for key, value in holder.items() if isinstance(holder, dict) else ():
        if key not in expected:
            yield key, value


def remove_at(path: JsonPath) -> Operation:
    return Operation(f"remove {path[-1]}", lambda eval_set: remove(eval_set.data, path))


# Problems at their rows


def with_problems(rows: Sequence[Row], problems: Sequence[Problem]) -> list[Row]:
    """The rows, each with the problems that are inside it and in no row that is smaller."""
    found: dict[int, list[Problem]] = {}
    for problem in problems:
        holding = [
            (len(row.path), -number)
            for number, row in enumerate(rows)
            if row.path is not None and problem.path[: len(row.path)] == row.path
        ]
        if holding:
            found.setdefault(-max(holding)[1], []).append(problem)
    return [
        replace(row, findings=(*row.findings, *found[number])) if number in found else row
        for number, row in enumerate(rows)
    ]
