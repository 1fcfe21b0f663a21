"""The selected case: its rows, and the operations on the whole case."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from operator import is_
from typing import Any

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.datasets import OWN_KEY, without_original
from evaltui.core.model.json_values import (
    field_of,
    indexed_objects,
    list_at,
    list_or_empty,
    text_or_empty,
    value_at,
)
from evaltui.core.model.modes import PREBUILT_PERSONAS
from evaltui.core.model.problems import EvalSetError, JsonPath
from evaltui.core.model.tags import tags_in, typed_tags, typed_tags_problem
from evaltui.core.model.tool_schema import declared_tools
from evaltui.documents.editing.json_paths import field_path, field_value
from evaltui.documents.editing.references import References
from evaltui.documents.editing.set import CaseEditor, EditBuilder, SetEditor
from evaltui.documents.edits import EditError, alike
from evaltui.documents.open_file import OpenFile
from evaltui.documents.style import in_one_line, laid_out
from evaltui.project.eval_set_file import EvalSetFile
from evaltui.text.figures import show_local
from evaltui.text.keys import key_of
from evaltui.text.values import did_you_mean
from evaltui.workbench.agent.agent_state import AgentState
from evaltui.workbench.case.editing import Editing
from evaltui.workbench.case.fields import (
    CasePart,
    Completion,
    Field,
    FieldError,
    Operation,
    Row,
    RowId,
    RowSource,
    object_of,
    remove_member,
    unknown_fields,
    value_of,
    with_problems,
)
from evaltui.workbench.case.rows.members import with_members
from evaltui.workbench.case.rows.session import (
    add_to_states,
    final_state_rows,
    fold_rows,
    session_rows,
)
from evaltui.workbench.case.rows.turn_source import add_row, add_rubric, add_turn, rubric_rows
from evaltui.workbench.case.rows.turns import turn_rows
from evaltui.workbench.cases.navigation import Navigation
from evaltui.workbench.cases.open_sets import OpenSets


def scenario_rows(source: RowSource) -> Iterator[Row]:
    path = source.editor.scenario.path
    yield Row(("scenario",), "section", "Simulated user", path=path)

    def set_prompt(text: str) -> EditBuilder:
        return source.build(lambda case: case.scenario.set_starting_prompt(text))

    def set_plan(text: str) -> EditBuilder:
        return source.build(lambda case: case.scenario.set_plan(text))

    fields = (("starting_prompt", "prompt", set_prompt), ("conversation_plan", "plan", set_plan))
    for name, label, change in fields:
        text = text_or_empty(field_value(source.editor.data, path, name))
        yield Row(
            ("scenario", name),
            "fact",
            label,
            value=text,
            shown=None if text else "empty",
            quiet=not text,
            field=Field(f"change {label} of the simulated user", text, "text", change),
            path=field_path(source.editor.data, path, name),
        )
    yield _persona(source, field_path(source.editor.data, path, "user_persona"))


def _persona(source: RowSource, path: JsonPath) -> Row:
    persona = value_at(source.editor.data, path)

    def change(typed: str) -> EditBuilder:
        value = value_of(typed.strip()) if typed.strip() else None
        if isinstance(value, str) and value not in PREBUILT_PERSONAS:
            hint = did_you_mean(value, PREBUILT_PERSONAS)
            raise FieldError(f"Built-in personas: {', '.join(PREBUILT_PERSONAS)}{hint}")
        if value is not None and not isinstance(value, str | dict):
            raise FieldError("Must be a built-in persona or a JSON object")
        return source.build(lambda case: case.scenario.set_persona(value))

    remove = Operation("remove persona", source.build(lambda case: case.scenario.set_persona(None)))
    row_id = ("scenario", "user_persona")
    if isinstance(persona, dict):
        text = json.dumps(persona, ensure_ascii=False, indent=2)
        field = Field("change persona", text, "json", change)
        shown = _persona_text(persona)
        return Row(row_id, "fact", "persona", "", persona, shown, field=field, delete=remove, path=path)
    text = text_or_empty(persona)
    return Row(
        row_id,
        "fact",
        "persona",
        value=text,
        shown=None if text else "none",
        quiet=not text,
        field=Field("choose persona", text, "value", change, tuple(map(Completion, PREBUILT_PERSONAS))),
        delete=remove if text else None,
        path=path,
    )


def _persona_text(persona: dict[str, Any]) -> str:
    """The text of a user-defined persona, one line for each instruction."""
    lines = [f"{persona.get('id', '')}  {persona.get('description', '')}"]
    for _, behavior in indexed_objects(list_at(persona, ("behaviors",))):
        lines.append(f"{behavior.get('name', '')}  {behavior.get('description', '')}")
        lines += [f"· {text}" for text in _texts(behavior, "behavior_instructions")]
        lines += [f"✗ {text}" for text in _texts(behavior, "violation_rubrics")]
    return "\n".join(lines)


def _texts(holder: dict[str, Any], name: str) -> list[str]:
    return [str(item) for item in list_or_empty(field_of(holder, name))]


_KNOWN_KEYS = (
    "eval_id",
    "conversation",
    "conversation_scenario",
    "session_input",
    "creation_timestamp",
    "rubrics",
    "final_session_state",
)


def case_rows(source: RowSource) -> list[Row]:
    """Every row of a case. Raises EditError where the set has no such case."""
    path = source.editor.path
    rows = [
        *_facts(source),
        *session_rows(source),
        *final_state_rows(source),
        *rubric_rows(source, None),
        *_unknown_rows(source),
        *_conversation(source),
        *add_row(source),
    ]
    below = additions(source)
    rows = [replace(row, adds=(*row.adds, *_with_additions(row, below))) for row in _fold(source, rows)]
    of_case = [problem for problem in source.problems if problem.path[: len(path)] == path]
    return with_problems(rows, of_case)


def _fold(source: RowSource, rows: list[Row]) -> Iterable[Row]:
    """The rows with members of values, without those in folded turns and calls."""
    if source.toggled is None:
        return rows
    return fold_rows(with_members(rows, source.toggled), source.toggled)


def additions(source: RowSource) -> tuple[Operation, ...]:
    """The operations that add to a case, independent of the current row."""
    editor = source.editor
    add_rubrics = add_rubric(source, None)
    if editor.is_simulated:
        to_conversation = Operation(
            "convert to a conversation",
            source.build(lambda case: case.to_conversation()),
            ("turn", 0),
        )
        return *add_to_states(source), add_rubrics, to_conversation
    last_turn = Operation(
        "add turn at the end",
        source.build(lambda case: case.insert_turn(case.turn_count)),
        ("turn", editor.turn_count, "user", 0),
        "value",
    )
    to_scenario = Operation(
        "convert to a scenario",
        source.build(lambda case: case.to_scenario()),
        ("scenario", "starting_prompt"),
    )
    return last_turn, *add_to_states(source), add_rubrics, to_scenario


def _with_additions(row: Row, more: tuple[Operation, ...]) -> tuple[Operation, ...]:
    labels = {operation.label for operation in row.adds}
    return tuple(operation for operation in more if operation.label not in labels)


def _facts(source: RowSource) -> Iterator[Row]:
    editor, eval_set = source.editor, SetEditor(source.editor.data)

    def rename(typed: str) -> EditBuilder:
        if problem := eval_set.eval_id_problem(typed, source.editor.number):
            raise FieldError(problem)
        return lambda current: current.rename_case(source.editor.number, typed)

    old, path = editor.eval_id, editor.field_path("eval_id")
    field = Field("rename case", old, "line", rename)
    yield Row(("id",), "fact", "id", value=old, field=field, rename=field, path=path)
    if tags := tags_in(editor.config, editor.reference[0]).get(editor.eval_id):
        yield _tags(source, tags)
    created = field_value(source.editor.data, editor.path, "creation_timestamp")
    if isinstance(created, int | float) and created:
        yield Row(("created",), "fact", "created", value=_moment(created))


def _tags(source: RowSource, tags: Sequence[str]) -> Row:
    def change(typed: str) -> EditBuilder:
        if problem := typed_tags_problem(typed):
            raise FieldError(problem)
        return replaced(typed_tags(typed))

    def replaced(new_tags: Sequence[str]) -> EditBuilder:
        removed = {tag for tag in tags if tag not in new_tags}
        reference = source.editor.reference
        return lambda current: References(current.config).change_tags([reference], new_tags, removed)

    shown = " ".join(tags)
    field = Field("change tags", shown, "line", change)
    return Row(
        ("tags",), "fact", "tags", value=shown, field=field, delete=Operation("remove tags", replaced(()))
    )


def _moment(timestamp: float) -> str:
    try:
        return show_local(datetime.fromtimestamp(timestamp, UTC))
    except (OverflowError, ValueError, OSError):
        return f"{timestamp}"


def _unknown_rows(source: RowSource) -> Iterator[Row]:
    # A mark of the format, which the case shows as what is not checked.
    marks = () if source.editor.checks_unspecified else (OWN_KEY,)
    for key, value in unknown_fields(without_original(source.editor.value), (*_KNOWN_KEYS, *marks)):
        path = (*source.editor.path, key)
        shown = json.dumps(value, ensure_ascii=False)
        row_id = ("extra", "unknown", key)
        yield Row(row_id, "fact", key, "", value, shown, quiet=True, delete=remove_member(path), path=path)


def _conversation(source: RowSource) -> Iterator[Row]:
    conversation = value_at(source.editor.data, source.editor.field_path("conversation"))
    if isinstance(conversation, list):
        for turn in range(len(conversation)):
            yield from turn_rows(source, turn)
        if not conversation:
            yield Row(
                ("turns",),
                "hint",
                shown=f"Conversation is empty   {key_of('add_below')}  Add turn",
                quiet=True,
                adds=(add_turn(source, 0),),
            )
    if source.editor.is_simulated:
        yield from scenario_rows(source)


class SelectedCase:
    """The rows of the selected case, built again in `follow`, and the operations on the whole case."""

    def __init__(self, agent: AgentState, sets: OpenSets, navigation: Navigation, editing: Editing) -> None:
        self.case: CaseId | None = None
        """None without a selected case."""
        self.rows: list[Row] = []
        """The rows; empty while the set is being read, and for data that is not shaped like a case."""
        self.version = 0
        """A number that changes whenever the rows do."""
        self.renamed_from: CaseId | None = None
        """The previous id of the case, if it was renamed since the rows were last built; else None."""
        self._agent = agent
        self._sets = sets
        self._navigation = navigation
        self._editing = editing
        self._source: RowSource | None = None
        # What the rows were made of: kept, so that none of it is taken for something new with its address.
        self._made_of: tuple[Any, ...] = ()
        self._toggled: frozenset[RowId] = frozenset()

    def follow(self) -> bool:
        """Builds the rows again where the case has changed; returns whether it has."""
        case = self._navigation.selection.case
        eval_set = self._sets.now(self._sets.file_of(case.path)) if case else None
        config = self._config(case) if case else None
        is_open = case is not None and self._open_file(case) is not None
        made_of = eval_set, config, self._agent.info, is_open
        if case == self.case and len(self._made_of) == len(made_of) and all(map(is_, self._made_of, made_of)):
            return False
        if case != self.case:
            self._toggled = frozenset()
        previous, self.case, self._made_of = self.case, case, made_of
        self._source = self._read(case, eval_set, config) if case and eval_set else None
        self.rows = _rows_of(self._source) if self._source else []
        self.renamed_from = None
        if previous and case and previous.path == case.path:
            listed = self._sets.by_case_path(case.path)
            if listed and listed.number(previous.eval_id) is None:
                self.renamed_from = previous
        self.version += 1
        return True

    def toggle_fold(self, row: RowId) -> None:
        """Opens or closes a turn, a call, the session, an object or an array."""
        if self._source is not None:
            self._toggled = self._toggled ^ {row}
            self._source = replace(self._source, toggled=self._toggled)
            self.rows = _rows_of(self._source)
            self.version += 1

    def reveal(self, row: RowId) -> None:
        """Opens all closed rows around a row."""
        for length in range(1, len(row)):
            around = next((shown for shown in self.rows if shown.id == row[:length]), None)
            if around is not None and around.fold == "closed":
                self.toggle_fold(around.id)

    def _config(self, case: CaseId) -> Any:
        try:
            return self._editing.config_data(self._sets.file_of(case.path))
        except (OSError, EvalSetError):
            return None

    def _read(self, case: CaseId, eval_set: EvalSetFile, config: Any) -> RowSource | None:
        number = eval_set.number(case.eval_id)
        # A set with errors cannot be run, and yet its cases can be mended.
        if number is None or (eval_set.eval_set is None and self._editing.refuses_to_edit(eval_set.path)):
            return None
        try:
            editor = CaseEditor(eval_set.value, number, config)
        except EditError:
            return None
        open_file = self._open_file(case)
        problems = eval_set.problems if open_file is not None or eval_set.eval_set is None else ()
        saved = self._saved(open_file.saved.value if open_file and open_file.saved else None, number, case)
        return RowSource(editor, declared_tools(self._agent.info), problems, saved, self._toggled)

    def _open_file(self, case: CaseId) -> OpenFile | None:
        return self._editing.open_file(self._sets.file_of(case.path))

    @staticmethod
    def _saved(data: Any, number: int, case: CaseId) -> Any:
        """The case as it is on disk, where it has not moved."""
        try:
            saved = CaseEditor(data, number)
        except EditError:
            return None
        return saved.value if saved.eval_id == case.eval_id else None

    @property
    def is_new(self) -> bool:
        """Whether no saved file has the case yet, as far as is known."""
        open_file = self._open_file(self.case) if self.case else None
        return open_file is not None and open_file.dirty and self.source.saved is None

    # What can be done

    @property
    def is_editable(self) -> bool:
        """Whether a case is shown, if only as JSON."""
        return self._source is not None

    @property
    def source(self) -> RowSource:
        """The source of the rows. Raises EditError where no case is shown."""
        if self._source is None:
            raise EditError("No case selected")
        return self._source

    def field(self, id: RowId, part: CasePart) -> Field | None:
        """The field of a row as the case has it now; None where there is no such row or field."""
        if part == "json":
            return self.json_field(id) if self._source is not None else None
        row = next((row for row in self.rows if row.id == id), None)
        return row.of(part) if row else None

    # As JSON

    @property
    def _written(self) -> str | None:
        """The text of the case in its file; None where it is unknown."""
        path, eval_set = self.source.editor.path, self._made_of[0]
        return eval_set.document.text_at(path) if eval_set.document else None

    def text(self) -> str:
        """The text of the case with its indentation removed; a case on one line is formatted."""
        written = self._written or json.dumps(self.source.editor.value)
        if "\n" not in written:
            return laid_out(written)
        indent = _indent(written)
        return "\n".join(line.removeprefix(indent) for line in _lines(written))

    def json_field(self, id: RowId) -> Field | None:
        """The arguments of the call of a row as a JSON text; for (), the case itself.

        None for other rows. Raises EditError where no case is shown.
        """
        editor = self.source.editor
        if not id:
            return Field(f"change the JSON of {editor.eval_id}", self.text(), "json", self._replaced)
        if len(id) < 4 or id[2] != "call":
            return None
        turn, number = int(id[1]), int(id[3])
        call = editor.turn(turn).call(number)

        def change(text: str) -> EditBuilder:
            args = object_of(text)
            if alike(args, call.arguments or {}):
                return _no_edit
            return self.source.build(lambda case: case.turn(turn).call(number).replace_arguments(args))

        shown = json.dumps(call.arguments or {}, ensure_ascii=False, indent=2)
        return Field(f"change arguments of {call.name}", shown, "json", change)

    def _replaced(self, text: str) -> EditBuilder:
        """Replaces the case by a JSON text. Raises FieldError for a text that is no case."""
        editor = self.source.editor
        value = object_of(text)
        if _lines(text) == _lines(self.text()) or alike(value, editor.value):
            return _no_edit
        new_id = field_value(value, (), "eval_id")
        if not isinstance(new_id, str):
            raise FieldError("eval_id must be a string")
        if problem := SetEditor(editor.data).eval_id_problem(new_id, editor.number):
            raise FieldError(problem)
        written = self._written or ""

        def build(eval_set: SetEditor) -> None:
            own = _indent_like(text, written) if "\n" in written else in_one_line(text, written)
            eval_set.replace_case(editor.number, new_id, own)

        return build


def _no_edit(_: SetEditor) -> None:
    pass


def _indent(written: str) -> str:
    """The white space before the closing bracket of a value that is written over several lines."""
    last = _lines(written)[-1]
    return last[: len(last) - len(last.lstrip())]


def _indent_like(text: str, written: str) -> str:
    """A text indented like the value that it replaces, with the same line ends."""
    indent, newline = _indent(written), "\r\n" if "\r\n" in written else "\n"
    first, *others = _lines(text.strip())
    return newline.join([first, *(indent + line if line.strip() else line for line in others)])


def _lines(text: str) -> list[str]:
    r"""The lines of a JSON text, split at `\n` and `\r\n` only: strings may have other line ends."""
    return text.replace("\r\n", "\n").split("\n")


def _rows_of(source: RowSource) -> list[Row]:
    """The rows of a case; none for data that is not shaped like a case: the problems of its set are shown
    then."""
    try:
        return case_rows(source)
    except (EditError, AttributeError, KeyError, IndexError, TypeError, ValueError):
        return []
