"""The source of the rows of a turn, the operations that add to it, and the rubrics of a turn or a case."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from evaltui.core.conversation.waiting import CONFIRMATION, REQUESTS
from evaltui.core.metrics.registry import RUBRIC_TYPES
from evaltui.core.model.json_values import value_at
from evaltui.documents.editing.calls import CallEditor
from evaltui.documents.editing.json_paths import field_path, field_value
from evaltui.documents.editing.session import RubricField, RubricsEditor
from evaltui.documents.editing.set import CaseEditor, EditBuilder
from evaltui.documents.editing.turn import TurnEditor
from evaltui.documents.values import copy_of
from evaltui.workbench.case.fields import Field, Operation, Row, RowId, RowSource, required_text


def add_rubric(source: RowSource, turn: int | None) -> Operation:
    return Operation(
        "add rubric to case" if turn is None else "add rubric to turn",
        _build(source, turn, lambda rubrics: rubrics.add("")),
        _id(turn, len(_rubrics(source.editor, turn))),
        "value",
    )


def rubric_rows(source: RowSource, turn: int | None) -> Iterator[Row]:
    for number in range(len(_rubrics(source.editor, turn))):
        yield _row(source, turn, number)


def _rubrics(case: CaseEditor, turn: int | None) -> RubricsEditor:
    return case.rubrics if turn is None else case.turn(turn).rubrics


def _build(source: RowSource, turn: int | None, edit: Callable[[RubricsEditor], object]) -> EditBuilder:
    return source.build(lambda case: edit(_rubrics(case, turn)))


def _id(turn: int | None, number: int) -> RowId:
    return ("rubric", number) if turn is None else ("turn", turn, "rubric", number)


def _row(source: RowSource, turn: int | None, number: int) -> Row:
    data = source.editor.data
    path = (*_rubrics(source.editor, turn).path, number)

    def change(field: RubricField) -> Callable[[str], EditBuilder]:
        return lambda text: _build(source, turn, lambda rubrics: rubrics.change(number, field, text))

    def change_id(text: str) -> EditBuilder:
        return change("rubric_id")(required_text("Rubric id")(text))

    text = field_value(data, field_path(data, path, "rubric_content"), "text_property")
    description = field_value(data, path, "description")
    shown = text if isinstance(text, str) else description if isinstance(description, str) else ""
    rubric_id, kind = (field_value(data, path, name) for name in ("rubric_id", "type"))
    kinds = [*RUBRIC_TYPES.values(), ""]
    next_kind = kinds[(kinds.index(kind) + 1) % len(kinds)] if kind in kinds else kinds[0]
    name = str(rubric_id or "")
    return Row(
        _id(turn, number),
        "part",
        "rubrics" if number == 0 else "",
        f"{name}  ({kind})" if kind else name,
        value=shown,
        shown=None if shown else "empty",
        quiet=not shown,
        turn=turn,
        field=Field("change rubric", shown, "text", change("text")),
        rename=Field("rename rubric", name, "line", change_id),
        adds=(add_rubric(source, turn),),
        delete=Operation("delete rubric", _build(source, turn, lambda rubrics: rubrics.delete(number))),
        cycle=Operation(
            f"change rubric type to {next_kind}" if next_kind else "remove rubric type",
            change("type")(next_kind),
        ),
        path=path if value_at(data, path) is not None else None,
    )


@dataclass(frozen=True)
class TurnSource:
    source: RowSource
    number: int
    """Its number in the case, from 0."""

    @cached_property
    def editor(self) -> TurnEditor:
        return self.source.editor.turn(self.number)

    @cached_property
    def calls(self) -> list[CallEditor]:
        return self.editor.calls

    def id(self, *more: str | int) -> RowId:
        return ("turn", self.number, *more)

    def build(self, edit: Callable[[TurnEditor], object]) -> EditBuilder:
        """An edit of this turn, made later from the data of that moment."""
        number = self.number
        return self.source.build(lambda case: edit(case.turn(number)))

    # What can be added

    def additions(self, first: Operation, call: int | None = None) -> tuple[Operation, ...]:
        """The operations that add to a turn; `first` is the one for `o`."""
        add_call, add_turn, *further = self._additions
        response = [self._add_response(call)] if call is not None else []
        every = [first, add_call, add_turn, *response, *further]
        by_label: dict[tuple[str, RowId | None], Operation] = {}
        for operation in every:
            by_label.setdefault((operation.label, operation.then), operation)
        return tuple(by_label.values())

    @cached_property
    def _additions(self) -> list[Operation]:
        """The operations of every row of the turn."""
        return [
            self.add_call(len(self.calls)),
            add_turn(self.source, self.number + 1),
            *self._response_turns(),
            *([self._add_answer()] if not self.editor.answer.texts else []),
            self.add_intermediate_response(),
            add_rubric(self.source, self.number),
        ]

    def add_call(self, index: int) -> Operation:
        edit = self.build(lambda turn: turn.insert_call(index, ""))
        return Operation("add call", edit, self.id("call", index), "value")

    def add_intermediate_response(self) -> Operation:
        return Operation(
            "add intermediate response",
            self.build(lambda turn: turn.add_intermediate_response("agent", "")),
            self.id("intermediate", len(self.editor.intermediate_responses)),
            "value",
        )

    def _add_response(self, call: int) -> Operation:
        # In a turn of events it comes right behind its call.
        in_events = self.editor.intermediate.shape == "events"
        number = self._responses_before(call) if in_events else len(self.editor.responses)
        return Operation(
            "add response to this call",
            self.build(lambda turn: turn.call(call).add_response({})),
            self.id("response", number),
            "value",
        )

    def _responses_before(self, call: int) -> int:
        """The index that a response to this call would have among the responses."""
        case = self.source.editor
        turn = CaseEditor(copy_of(case.data), case.number).turn(self.number)
        turn.call(call).add_response({"": None})
        return next(response.number for response in turn.responses if response.response == {"": None})

    def _add_answer(self) -> Operation:
        return Operation("add response", None, self.id("answer", len(self.editor.answer.parts)), "value")

    def _response_turns(self) -> Iterator[Operation]:
        """The operations that add a turn which responds to a request of this one; the response is typed
        next."""
        index = self.number + 1
        for call in self.calls:
            if call.name in REQUESTS:
                content = {"confirmed": True} if call.name == CONFIRMATION else {}
                response: dict[str, Any] = {"name": call.name, "response": content}
                yield Operation(
                    f"add response to {call.name}",
                    self.source.build(_insert_response_turn(index, response)),
                    ("turn", index, "user", 0),
                    "value",
                )


def _insert_response_turn(index: int, response: dict[str, Any]) -> Callable[[CaseEditor], object]:
    return lambda case: case.insert_turn(index, response=response)


def add_turn(source: RowSource, index: int) -> Operation:
    """The operation that adds a turn before the one at `index`; the user's text is typed next."""
    edit = source.build(lambda case: case.insert_turn(index))
    return Operation("add turn", edit, ("turn", index, "user", 0), "value")


ADD_ROW: RowId = ("add",)


def add_row(source: RowSource) -> Iterator[Row]:
    """The last row of an edited case: it opens the menu of additions."""
    if source.toggled is None or source.editor.is_simulated or not source.editor.turn_count:
        return
    count = source.editor.turn_count
    turn = TurnSource(source, count - 1)
    yield Row(
        ADD_ROW,
        "hint",
        shown="+ turn, call, argument, response, rubric, file",
        quiet=True,
        turn=count - 1,
        adds=turn.additions(add_turn(source, count), len(turn.calls) - 1 if turn.calls else None),
    )
