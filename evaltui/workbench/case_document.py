"""The selected case as it is being edited: its rows, and what can be done to the whole of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable
from typing import Any

from evaltui.core.editing.case import CaseEditor
from evaltui.core.editing.json_paths import Changes, field_value
from evaltui.core.editing.set import EditBuilder, SetEditor
from evaltui.core.jsondoc.edits import EditError, PutText, alike
from evaltui.core.jsondoc.writing import in_one_line, laid_out
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.problems import EvalSetError, JsonPath
from evaltui.workbench.agent_state import AgentState
from evaltui.workbench.case_rows.case import case_rows
from evaltui.workbench.case_rows.turns import attach, next_expectation, toggle_context
from evaltui.workbench.editing import Editing
from evaltui.workbench.fields import CaseSource, FieldError, Operation, Row, declared_tools, object_of
from evaltui.workbench.navigation import Navigation
from evaltui.workbench.open_sets import OpenSets


class CaseDocument:
    """`rows` are made anew in `follow`, where something in them may have changed; `version` counts that."""

    def __init__(self, agent: AgentState, sets: OpenSets, navigation: Navigation, editing: Editing) -> None:
        self._agent = agent
        self._sets = sets
        self._navigation = navigation
        self._editing = editing
        self.key: CaseId | None = None
        self.rows: list[Row] = []
        self.version = 0
        self.renamed_from: CaseId | None = None
        self._source: CaseSource | None = None
        # What the rows were made of: kept, so that none of it is taken for something new with its address.
        self._made_of: tuple[Any, ...] = ()
        # Rows of turns, as long as the case, the config and the tools of the agent are the same.
        self._known: dict[Hashable, tuple[Any, list[Row]]] = {}

    def follow(self) -> bool:
        """Whether the rows are others than before."""
        key = self._navigation.selection.case
        file = self._sets.file_of(key.path) if key else None
        draft = self._editing.open_file(file) if file else None
        opened = self._sets.opened(file)
        config = self._config(key) if key else None
        data = draft.document.value if draft else None
        made_of = (key, data, opened, config, self._agent.info)
        if len(made_of) == len(self._made_of) and all(
            one is other or (number == 0 and one == other)
            for number, (one, other) in enumerate(zip(made_of, self._made_of, strict=True))
        ):
            return False
        before = self._made_of
        same_around = before and before[3] is config and before[4] is self._agent.info
        if not same_around or before[0] != key:
            self._known = {}
        self._made_of = made_of
        previous, self.key = self.key, key
        self._source = self._read(key, data, config) if key else None
        self.rows = _rows_of(self._source) if self._source else []
        renamed = previous is not None and key is not None and previous.path == key.path
        self.renamed_from = previous if renamed and self._is_gone(previous) else None
        self.version += 1
        return True

    def _is_gone(self, key: CaseId | None) -> bool:
        entry = self._sets.entry_of(key.path) if key else None
        return (
            entry is not None and key is not None and all(one.eval_id != key.eval_id for one in entry.cases)
        )

    def _config(self, key: CaseId) -> Any:
        try:
            return self._editing.config_data(self._sets.file_of(key.path))
        except (OSError, EvalSetError):
            return None

    def _read(self, key: CaseId, data: Any, config: Any) -> CaseSource | None:
        file = self._sets.file_of(key.path)
        opened = self._sets.opened(file)
        if data is None:
            found = self._editing.case_data(key)
            if found is None and opened is not None and not self._editing.refuses_to_edit(file):
                # A set with errors has no models, and yet its cases can be mended.
                try:
                    data = self._editing.data(file)
                except (OSError, EvalSetError):
                    return None
            elif found is None:
                return None
            else:
                data = found[0]
                return CaseSource(data, config, found[1], declared_tools(self._agent.info))
        number = self._number(key, data)
        if number is None:
            return None
        problems = opened.problems if opened else ()
        draft = self._editing.open_file(file)
        saved = self._saved(draft.saved.value if draft and draft.saved else None, number, key)
        return CaseSource(
            data, config, number, declared_tools(self._agent.info), problems, saved, self._known
        )

    def _number(self, key: CaseId, data: Any) -> int | None:
        """Where the case is; most often it is where it was, which is not looked for among thousands."""
        known = self._source.case if self._source else 0
        try:
            if CaseEditor(data, known).eval_id == key.eval_id:
                return known
        except EditError:
            pass
        try:
            return self._editing.number(key)
        except (ValueError, OSError):
            return None

    @staticmethod
    def _saved(data: Any, number: int, key: CaseId) -> Any:
        """The case as it is on disk, where it has not moved."""
        try:
            saved = CaseEditor(data, number)
        except EditError:
            return None
        return saved.value if saved.eval_id == key.eval_id else None

    @property
    def is_new(self) -> bool:
        """Whether the case is in no file yet, as far as is known."""
        draft = self._editing.open_file(self._sets.file_of(self.key.path)) if self.key else None
        return draft is not None and draft.dirty and self._now.saved is None

    # What can be done

    @property
    def _now(self) -> CaseSource:
        if self._source is None:
            raise EditError("no case is shown")
        return self._source

    def next_expectation(self, turn: int) -> tuple[Operation, int]:
        return next_expectation(self._now, turn)

    def toggle_context(self, turn: int) -> Operation:
        return toggle_context(self._now, turn)

    def attach(self, turn: int, payload: bytes, mime_type: str) -> Operation:
        return attach(self._now, turn, payload, mime_type)

    def refuses(self, build: EditBuilder) -> str | None:
        """Why a change cannot be made, as a sentence."""
        try:
            build(SetEditor(self._now.data, self._now.config))
        except (EditError, EvalSetError) as error:
            return str(error)
        return None

    def place_of(self, row: Row | None, part: str) -> tuple[JsonPath, str]:
        """What stays with a text that could not be applied: where it belongs, and which of what is there.

        Without a row it belongs to the case as a whole.
        """
        now = self._now
        own = now.editor.path
        if row is None:
            return own, part
        words = "/".join(word for word in row.id if isinstance(word, str))
        part = "value" if row.of("name") is row.of("value") else part
        if row.path is not None:
            return row.path, f"{words} {part}"
        return (own if row.turn is None else now.editor.turn(row.turn).path), f"{words} {part}"

    # As JSON

    def text(self) -> str:
        """The case as it is written in its file, its lines moved to the left; on one line it is laid out."""
        now = self._now
        assert self.key is not None
        draft = self._editing.open_file(self._sets.file_of(self.key.path))
        written = draft.document.text_at(now.editor.path) if draft else json.dumps(now.editor.value)
        if "\n" not in written:
            return laid_out(written)
        indent = _indent(written)
        return "\n".join(line.removeprefix(indent) for line in _lines(written))

    def replaced(self, text: str) -> tuple[EditBuilder, str] | None:
        """What makes a JSON text the case, and its id then; None where it says the same.

        Raises FieldError and EditError for a text that cannot be the case.
        """
        now = self._now
        assert self.key is not None
        draft = self._editing.open_file(self._sets.file_of(self.key.path))
        value = object_of(text)
        path = now.editor.path
        if _lines(text) == _lines(self.text()) or alike(value, now.editor.value):
            return None
        new_id = field_value(value, (), "eval_id")
        if not isinstance(new_id, str):
            raise FieldError("a case needs an eval_id, which is a text")
        if problem := SetEditor(now.data).eval_id_problem(new_id, now.case):
            raise FieldError(problem)
        written = draft.document.text_at(path) if draft else ""
        case = now.case

        def build(eval_set: SetEditor) -> Changes:
            renaming = eval_set.rename_case(case, new_id)
            own = _indented(text, written) if "\n" in written else in_one_line(text, written)
            return Changes([PutText(path, own)], renaming.of_config)

        return build, new_id

    def call_json(self, row: Row) -> tuple[str, Callable[[str], str | None]] | None:
        """The arguments of the call that a row belongs to, and what takes them back; None elsewhere."""
        if len(row.id) < 4 or row.id[2] != "call" or self.key is None:
            return None
        now, key = self._now, self.key
        turn, number = int(row.id[1]), int(row.id[3])
        call = now.editor.turn(turn).call(number)
        case = now.case
        shown = json.dumps(call.arguments or {}, ensure_ascii=False, indent=2)

        def apply(text: str) -> str | None:
            try:
                args = object_of(text)
            except FieldError as error:
                return str(error)
            if alike(args, call.arguments or {}):
                return None
            self.follow()
            found = self._now.editor.turn(turn).calls if self.key == key else []
            there = [[one.name, one.arguments] for one in found[number : number + 1]]
            if not alike(there, [[call.name, call.arguments]]):
                return "the call was changed outside meanwhile, or is another one now: go to it again"
            self._editing.do(
                f"change the arguments of {call.name}",
                self._sets.file_of(key.path),
                lambda eval_set: eval_set.case(case).turn(turn).call(number).replace_arguments(args),
            )
            return None

        return shown, apply


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


def _rows_of(source: CaseSource) -> list[Row]:
    """None for a case that is not shaped like one: the problems of its set are shown in their place."""
    try:
        return case_rows(source)
    except (EditError, AttributeError, KeyError, IndexError, TypeError, ValueError):
        return []
