"""A turn that rows are made of, and everything that can be added to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from evaltui.core.editing.calls import CallEditor
from evaltui.core.editing.case import CaseEditor
from evaltui.core.editing.json_paths import Changes
from evaltui.core.editing.set import EditBuilder
from evaltui.core.editing.turn import TurnEditor
from evaltui.core.jsondoc.edits import Edit, apply_to_data
from evaltui.core.recording.waiting import CONFIRMATION, REQUESTS
from evaltui.workbench.case_rows.rubrics import add_rubric
from evaltui.workbench.fields import Operation, RowId, RowSource


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

    def build(self, edit: Callable[[TurnEditor], Changes | list[Edit]]) -> EditBuilder:
        """An edit of this turn, to be made from the data that there is by then."""
        number = self.number
        return self.source.build(lambda case: edit(case.turn(number)))

    # What can be added

    def additions(self, first: Operation, call: int | None = None) -> tuple[Operation, ...]:
        """`first` is what `o` adds, then everything else that a turn can get."""
        every = [
            first,
            self.add_call(len(self.calls)),
            add_turn(self.source, self.number + 1),
            *([self._add_response(call)] if call is not None else []),
            *self._response_turns(),
            *([self._add_answer()] if not self.editor.answer.texts else []),
            self.add_intermediate_response(),
            add_rubric(self.source, self.number),
        ]
        found: dict[tuple[str, RowId | None], Operation] = {}
        for one in every:
            found.setdefault((one.label, one.then), one)
        return tuple(found.values())

    def add_call(self, index: int) -> Operation:
        edit = self.build(lambda turn: turn.insert_call(index, ""))
        return Operation("add a call", edit, self.id("call", index), "value")

    def add_intermediate_response(self) -> Operation:
        return Operation(
            "add what an agent says before the answer",
            self.build(lambda turn: turn.add_intermediate_response("agent", "")),
            self.id("intermediate", len(self.editor.intermediate_responses)),
            "value",
        )

    def _add_response(self, call: int) -> Operation:
        # In a turn of events it comes right behind its call.
        in_events = self.editor.intermediate.shape == "events"
        number = self._responses_before(call) if in_events else len(self.editor.responses)
        return Operation(
            "add a response to this call",
            self.build(lambda turn: turn.call(call).add_response({})),
            self.id("response", number),
            "value",
        )

    def _responses_before(self, call: int) -> int:
        """Which of the responses one to this call would be."""
        edits = self.calls[call].add_response({"": None})
        case = self.source.editor
        after = CaseEditor(apply_to_data(case.data, edits), case.number).turn(self.number).responses
        return next(one.number for one in after if one.response == {"": None})

    def _add_answer(self) -> Operation:
        return Operation("write the answer", None, self.id("answer", len(self.editor.answer.parts)), "value")

    def _response_turns(self) -> Iterator[Operation]:
        """A turn that responds to a request of this one; what it responds is typed next."""
        index = self.number + 1
        for call in self.calls:
            if call.name in REQUESTS:
                content = {"confirmed": True} if call.name == CONFIRMATION else {}
                response: dict[str, Any] = {"name": call.name, "response": content}
                yield Operation(
                    f"add a response to {call.name}",
                    self.source.build(_insert_response_turn(index, response)),
                    ("turn", index, "user", 0),
                    "value",
                )


def _insert_response_turn(index: int, response: dict[str, Any]) -> Callable[[CaseEditor], Changes]:
    return lambda case: case.insert_response_turn(index, response)


def add_turn(source: RowSource, index: int) -> Operation:
    """A turn before the one at `index`, and what its user says is typed next."""
    edit = source.build(lambda case: case.insert_turn(index))
    return Operation("add a turn", edit, ("turn", index, "user", 0), "value")
