"""The selected case: its rows, and what can be done to the whole of it."""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import replace
from operator import is_
from typing import Any

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.declared_tool import declared_tools
from evaltui.core.model.problems import EvalSetError
from evaltui.documents.editing.json_paths import field_value
from evaltui.documents.editing.set import CaseEditor, EditBuilder, SetEditor
from evaltui.documents.edits import EditError, alike
from evaltui.documents.open_file import OpenFile
from evaltui.documents.style import in_one_line, laid_out
from evaltui.files.eval_set_file import EvalSetFile
from evaltui.workbench.agent.agent_state import AgentState
from evaltui.workbench.case.editing import Editing
from evaltui.workbench.case.fields import CasePart, Field, FieldError, Row, RowId, RowSource, object_of
from evaltui.workbench.case.rows.case import case_rows
from evaltui.workbench.cases.navigation import Navigation
from evaltui.workbench.cases.open_sets import OpenSets


class SelectedCase:
    """The rows of the selected case, made anew in `follow`, and what can be done to the whole of it."""

    def __init__(self, agent: AgentState, sets: OpenSets, navigation: Navigation, editing: Editing) -> None:
        self.case: CaseId | None = None
        """None without a selected case."""
        self.rows: list[Row] = []
        """None of them while its set is being read, and for what is not shaped like a case."""
        self.version = 0
        """Another one whenever the rows are."""
        self.renamed_from: CaseId | None = None
        """What the case was called when the rows were last made; None where that is the same."""
        self._agent = agent
        self._sets = sets
        self._navigation = navigation
        self._editing = editing
        self._source: RowSource | None = None
        # What the rows were made of: kept, so that none of it is taken for something new with its address.
        self._made_of: tuple[Any, ...] = ()
        # Rows of turns, as long as the case, the config and the tools of the agent are the same.
        self._known: dict[Hashable, tuple[Any, list[Row]]] = {}
        self._toggled: frozenset[RowId] = frozenset()

    def follow(self) -> bool:
        """Whether the rows are others than before."""
        case = self._navigation.selection.case
        eval_set = self._sets.now(self._sets.file_of(case.path)) if case else None
        config = self._config(case) if case else None
        is_open = case is not None and self._open_file(case) is not None
        before, made_of = self._made_of, (eval_set, config, self._agent.info, is_open)
        if case == self.case and _are_same(before, made_of):
            return False
        if case != self.case or not _are_same(before[1:], made_of[1:]):
            self._known = {}
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
        """Opens everything folded around a row."""
        for length in range(1, len(row)):
            around = next((one for one in self.rows if one.id == row[:length]), None)
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
        return RowSource(
            editor, declared_tools(self._agent.info), problems, saved, self._toggled, self._known
        )

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
        """Whether the case is in no file yet, as far as is known."""
        open_file = self._open_file(self.case) if self.case else None
        return open_file is not None and open_file.dirty and self.source.saved is None

    # What can be done

    @property
    def is_editable(self) -> bool:
        """Whether a case is shown, if only as JSON."""
        return self._source is not None

    @property
    def source(self) -> RowSource:
        """What the rows are made of. Raises EditError where no case is shown."""
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
        """The case as it is written in its file; None where that is not known."""
        path, eval_set = self.source.editor.path, self._made_of[0]
        return eval_set.document.text_at(path) if eval_set.document else None

    def text(self) -> str:
        """The case as it is written in its file, its lines moved to the left; on one line it is laid out."""
        written = self._written or json.dumps(self.source.editor.value)
        if "\n" not in written:
            return laid_out(written)
        indent = _indent(written)
        return "\n".join(line.removeprefix(indent) for line in _lines(written))

    def json_field(self, id: RowId) -> Field | None:
        """The arguments of the call that a row belongs to as a JSON text; of (), the case itself.

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
                return _nothing
            return self.source.build(lambda case: case.turn(turn).call(number).replace_arguments(args))

        shown = json.dumps(call.arguments or {}, ensure_ascii=False, indent=2)
        return Field(f"change arguments of {call.name}", shown, "json", change)

    def _replaced(self, text: str) -> EditBuilder:
        """Makes a JSON text the case. Raises FieldError for a text that cannot be one."""
        editor = self.source.editor
        value = object_of(text)
        if _lines(text) == _lines(self.text()) or alike(value, editor.value):
            return _nothing
        new_id = field_value(value, (), "eval_id")
        if not isinstance(new_id, str):
            raise FieldError("eval_id must be a string")
        if problem := SetEditor(editor.data).eval_id_problem(new_id, editor.number):
            raise FieldError(problem)
        written = self._written or ""

        def build(eval_set: SetEditor) -> None:
            own = _indented(text, written) if "\n" in written else in_one_line(text, written)
            eval_set.replace_case(editor.number, new_id, own)

        return build


def _nothing(_: SetEditor) -> None:
    pass


def _are_same(some: tuple[Any, ...], others: tuple[Any, ...]) -> bool:
    """Whether they are the same objects."""
    return len(some) == len(others) and all(map(is_, some, others))


def _indent(written: str) -> str:
    """The white space before the closing bracket of a value that is written over several lines."""
    last = _lines(written)[-1]
    return last[: len(last) - len(last.lstrip())]


def _indented(text: str, written: str) -> str:
    """A text in place of one that is written over several lines: as far in, its lines ended like those."""
    indent, newline = _indent(written), "\r\n" if "\r\n" in written else "\n"
    first, *others = _lines(text.strip())
    return newline.join([first, *(indent + line if line.strip() else line for line in others)])


def _lines(text: str) -> list[str]:
    """The lines of a JSON text. Others than these two ends of a line may stand in its strings."""
    return text.replace("\r\n", "\n").split("\n")


def _rows_of(source: RowSource) -> list[Row]:
    """None for a case that is not shaped like one: the problems of its set are shown in their place."""
    try:
        return case_rows(source)
    except (EditError, AttributeError, KeyError, IndexError, TypeError, ValueError):
        return []
