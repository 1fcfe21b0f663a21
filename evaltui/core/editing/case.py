"""A case of an eval set, and every change to it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from evaltui.core.editing.json_paths import (
    Changes,
    cases_path,
    field_path,
    field_value,
    in_style,
    remove_field,
    set_id,
)
from evaltui.core.editing.references import CaseRef, References
from evaltui.core.editing.session import RubricsEditor, ScenarioEditor, SessionEditor, StateEditor
from evaltui.core.editing.turn import MessageEditor, TurnEditor
from evaltui.core.jsondoc.edits import Edit, EditError, Insert, Put, Remove
from evaltui.core.model.json_values import list_at, value_at
from evaltui.core.model.problems import JsonPath


class CaseEditor:
    """The case with this number, from 0, in the data of an eval set.

    `config` is the data of the config that scores the set, None where there is no file. Raises EditError
    where there is no such case.
    """

    def __init__(self, data: Any, case: int, config: Any = None) -> None:
        self.data = data
        self.config = config
        self.number = case
        self.path: JsonPath = (*cases_path(data), case)
        if not isinstance(value_at(data, self.path), dict):
            raise EditError(f"this set has no case {case + 1}")

    @property
    def value(self) -> dict[str, Any]:
        """The case as it is written."""
        value = value_at(self.data, self.path)
        assert isinstance(value, dict)
        return value

    @property
    def eval_id(self) -> str:
        """Empty where it has none."""
        value = field_value(self.data, self.path, "eval_id")
        return value if isinstance(value, str) else ""

    @cached_property
    def reference(self) -> CaseRef:
        """How the config names it."""
        return set_id(self.data), self.eval_id

    def field_path(self, name: str) -> JsonPath:
        """The path of a field of the case, there or not, in the spelling of the case."""
        return field_path(self.data, self.path, name)

    # Turns

    @cached_property
    def turns_path(self) -> JsonPath:
        """Raises EditError where the user of the case is simulated, so that it has no turns."""
        path = self.field_path("conversation")
        if not isinstance(value_at(self.data, path), list) and self.is_simulated:
            raise EditError(
                "the user of this case is simulated, so it has no turns; make it a conversation first"
            )
        return path

    @property
    def turn_count(self) -> int:
        return len(list_at(self.data, self.turns_path))

    def turn(self, number: int) -> TurnEditor:
        """Raises EditError where there is no such turn."""
        path = (*self.turns_path, number)
        if not isinstance(value_at(self.data, path), dict):
            raise EditError(f"this case has no turn {number + 1}")
        return TurnEditor(self.data, self.config, self.reference, path)

    def add_turn(self, text: str = "") -> list[Edit]:
        """A turn at the end, in which the user says `text` and nothing is said of what is expected."""
        path, turn = self.turns_path, self._new_turn({"text": text})
        if not isinstance(value_at(self.data, path), list):
            return [Put(path, [turn])]
        return [Insert(path, self.turn_count, turn)]

    def insert_turn(self, index: int) -> Changes:
        """A turn before the one at `index`; the marks of those after it move along."""
        if index >= self.turn_count:
            return Changes(self.add_turn(""))
        return self._insert(index, self._new_turn({"text": ""}))

    def insert_response_turn(self, index: int, response: dict[str, Any]) -> Changes:
        """A turn before the one at `index`, in which the user responds to a call."""
        part = in_style(self.data, self.turns_path, {"function_response": response})
        return self._insert(index, self._new_turn(part))

    def _new_turn(self, part: dict[str, Any]) -> dict[str, Any]:
        user = {"parts": [part], "role": "user"}
        return in_style(self.data, self.turns_path, {"user_content": user})

    def _insert(self, index: int, turn: dict[str, Any]) -> Changes:
        marks = References(self.config).renumber_turns(
            self.reference, lambda number: number + (number >= index)
        )
        return Changes([Insert(self.turns_path, index, turn)], marks)

    # Session and rubrics

    @property
    def session(self) -> SessionEditor:
        return SessionEditor(self.data, self.field_path("session_input"))

    @property
    def final_state(self) -> StateEditor:
        """What the state must be in the end. ADK reads it nowhere and takes absent for `{}`: not checked."""
        return StateEditor(self.data, self.field_path("final_session_state"))

    @property
    def rubrics(self) -> RubricsEditor:
        return RubricsEditor(self.data, self.path, self.path)

    # Simulated user

    @property
    def is_simulated(self) -> bool:
        return isinstance(field_value(self.data, self.path, "conversation_scenario"), dict)

    @property
    def scenario(self) -> ScenarioEditor:
        """Raises EditError where the user is not simulated."""
        if not self.is_simulated:
            raise EditError("the user of this case is not simulated; make it a scenario first")
        return ScenarioEditor(self.data, self.field_path("conversation_scenario"))

    def to_scenario(self) -> Changes:
        """A simulated user in place of fixed turns, who begins with what the first turn says.

        The turns go, and with them their marks.
        """
        if self.is_simulated:
            raise EditError("the user of this case is simulated already")
        conversation = self.field_path("conversation")
        user = field_path(self.data, (*conversation, 0), "user_content")
        texts = MessageEditor(self.data, user, "user").texts
        scenario = {"starting_prompt": texts[0].text if texts else "", "conversation_plan": ""}
        edits = [
            *remove_field(self.data, conversation),
            Put(self.field_path("conversation_scenario"), in_style(self.data, self.path, scenario)),
        ]
        return Changes(edits, References(self.config).renumber_turns(self.reference, lambda turn: None))

    def to_conversation(self) -> list[Edit]:
        """Fixed turns in place of a simulated user: at first one, with the prompt of the scenario."""
        scenario = self.scenario.path
        prompt = field_value(self.data, scenario, "starting_prompt")
        content = {"parts": [{"text": prompt if isinstance(prompt, str) else ""}], "role": "user"}
        turn = in_style(self.data, self.path, {"user_content": content})
        return [Remove(scenario), Put(self.field_path("conversation"), [turn])]
