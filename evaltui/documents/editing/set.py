"""Changes of an eval set: of its list of cases, and within a case."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from evaltui.core.model.datasets import checks_unspecified, without_original
from evaltui.core.model.json_values import list_at, text_or_empty, value_at
from evaltui.core.model.modes import TurnMode
from evaltui.core.model.problems import JsonPath
from evaltui.core.model.stored_cases import StoredCase
from evaltui.documents.editing.json_paths import (
    cases_path,
    eval_ids,
    field_path,
    field_value,
    free_id,
    in_style,
    set_id,
)
from evaltui.documents.editing.references import CaseRef, References
from evaltui.documents.editing.session import RubricsEditor, ScenarioEditor, SessionEditor, StateEditor
from evaltui.documents.editing.turn import MessageEditor, TurnEditor
from evaltui.documents.edits import EditError
from evaltui.documents.values import copy_of, discard, insert, move, put, remove
from evaltui.text.figures import counted

_MAX_ID_LENGTH = 200


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
            raise EditError(f"The set has no case {case + 1}")

    @property
    def value(self) -> dict[str, Any]:
        """The case as it is written."""
        value = value_at(self.data, self.path)
        assert isinstance(value, dict)
        return value

    @property
    def eval_id(self) -> str:
        """Empty where it has none."""
        return text_or_empty(field_value(self.data, self.path, "eval_id"))

    @cached_property
    def reference(self) -> CaseRef:
        """The set id and case id by which the config names it."""
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
            raise EditError("The case has a simulated user and no turns; convert it to a conversation")
        return path

    @property
    def checks_unspecified(self) -> bool:
        """Whether absent responses and calls are expectations, as in ADK; not in an EvaluationDataset."""
        return checks_unspecified(self.value)

    @property
    def turn_count(self) -> int:
        return len(list_at(self.data, self.turns_path))

    def turn(self, number: int) -> TurnEditor:
        """Raises EditError where there is no such turn."""
        path = (*self.turns_path, number)
        if not isinstance(value_at(self.data, path), dict):
            raise EditError(f"The case has no turn {number + 1}")
        return TurnEditor(self.data, self.config, self.reference, path)

    def insert_turn(self, index: int, text: str = "", response: dict[str, Any] | None = None) -> None:
        """A turn before the one at `index`, in which the user says `text`, or responds to a call; nothing is
        said of what is expected. The marks of the turns after it move along."""
        path, count = self.turns_path, self.turn_count
        part = {"function_response": response} if response is not None else {"text": text}
        insert(self.data, path, min(index, count), _turn(self.data, path, part))
        if index < count:
            references = References(self.config)
            references.renumber_turns(self.reference, lambda number: number + (number >= index))

    # Session and rubrics

    @property
    def session(self) -> SessionEditor:
        return SessionEditor(self.data, self.field_path("session_input"))

    @property
    def final_state(self) -> StateEditor:
        """The expected final session state. ADK reads absent as `{}`, and never checks it."""
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
            raise EditError("The case has no simulated user; convert it to a scenario")
        return ScenarioEditor(self.data, self.field_path("conversation_scenario"))

    def to_scenario(self) -> None:
        """Replaces fixed turns, and their marks, by a simulated user who starts with the first message.

        The turns go, and with them their marks.
        """
        if self.is_simulated:
            raise EditError("The case already has a simulated user")
        conversation = self.field_path("conversation")
        user = field_path(self.data, (*conversation, 0), "user_content")
        texts = MessageEditor(self.data, user, "user").texts
        scenario = {"starting_prompt": texts[0].text if texts else "", "conversation_plan": ""}
        scenario = in_style(self.data, self.path, scenario)
        place = self.field_path("conversation_scenario")
        discard(self.data, conversation)
        put(self.data, place, scenario)
        References(self.config).renumber_turns(self.reference, lambda turn: None)

    def to_conversation(self) -> None:
        """Replaces a simulated user by fixed turns: one turn with the prompt of the scenario."""
        scenario = self.scenario.path
        prompt = text_or_empty(field_value(self.data, scenario, "starting_prompt"))
        turn = _turn(self.data, self.path, {"text": prompt})
        place = self.field_path("conversation")
        remove(self.data, scenario)
        put(self.data, place, [turn])


def _turn(data: Any, path: JsonPath, part: Mapping[str, Any]) -> dict[str, Any]:
    """A turn in which the user says or responds this, in the spelling of the objects around `path`."""
    content = {"parts": [in_style(data, path, part)], "role": "user"}
    return in_style(data, path, {"user_content": content})


def new_set_text(eval_set_id: str, created: float) -> str:
    """The text of an empty set, as google-adk 2.13 writes it; `created` in seconds since 1970."""
    data = {"eval_set_id": eval_set_id, "name": eval_set_id, "eval_cases": [], "creation_timestamp": created}
    return json.dumps(data, indent=2, ensure_ascii=False)


def set_id_problem(eval_set_id: str, existing: Iterable[str] = ()) -> str | None:
    """The sentence why a new set cannot have an id; None where it can. The allowed characters are ADK's."""
    if not re.fullmatch("[A-Za-z0-9_]+", eval_set_id):
        return "A set id has letters a–z, digits and _"
    if len(eval_set_id) > _MAX_ID_LENGTH:
        return f"A set id has at most {counted(_MAX_ID_LENGTH, 'character')}: it names a file"
    return f"{eval_set_id} already exists" if eval_set_id in set(existing) else None


def copy_id(original: str, existing: Iterable[str]) -> str:
    """`late_2` for a copy of `late`, `late_3` for the next one and for a copy of `late_2`."""
    numbered = re.fullmatch(r"(.+)_(\d{1,9})", original)
    stem, number = (numbered[1], int(numbered[2]) + 1) if numbered else (original or "case", 2)
    return free_id(stem, number, set(existing))


@dataclass(frozen=True)
class SetEditor:
    data: Any
    """The parsed JSON of the eval set."""
    config: Any = None
    """The parsed JSON of the config beside it, None where there is no file."""

    @classmethod
    def copied(cls, data: Any, config: Any = None) -> SetEditor:
        """Copies of a set and its config, which can be changed."""
        return cls(copy_of(data), copy_of(config))

    @property
    def eval_set_id(self) -> str:
        return set_id(self.data)

    @property
    def path(self) -> JsonPath:
        """The path of the list of cases."""
        return cases_path(self.data)

    @property
    def count(self) -> int:
        """How many cases it has."""
        return len(list_at(self.data, self.path))

    @property
    def eval_ids(self) -> list[str]:
        """The ids of all cases in order; "" for those that have none."""
        return eval_ids(self.data)

    def case(self, number: int) -> CaseEditor:
        """Raises EditError where there is no such case."""
        return CaseEditor(self.data, number, self.config)

    # Ids

    def rename(self, new_id: str) -> None:
        """Renames the set; its `name` follows where it was the id. Raises EditError for an empty id."""
        if not new_id:
            raise EditError("Set id is missing")
        old = self.eval_set_id
        put(self.data, field_path(self.data, (), "eval_set_id"), new_id)
        if old and value_at(self.data, ("name",)) == old:
            put(self.data, ("name",), new_id)
        if old:
            References(self.config).rename_set(old, new_id)

    def eval_id_problem(self, eval_id: str, case: int | None = None) -> str | None:
        """Why a case cannot have an id, as a sentence; None where it can. Without `case`: a new case.

        A case may keep its id, also where another case has the same.
        """
        if not eval_id:
            return "Case id is missing"
        ids = self.eval_ids
        is_taken = eval_id in ids and (case is None or ids[case] != eval_id)
        return f"{eval_id} already exists" if is_taken else None

    def rename_case(self, case: int, eval_id: str) -> None:
        """Raises EditError for an id that is empty or taken: see `eval_id_problem`."""
        if problem := self.eval_id_problem(eval_id, case):
            raise EditError(problem)
        editor = self.case(case)
        old = editor.reference
        if eval_id != old[1]:
            put(self.data, editor.field_path("eval_id"), eval_id)
            References(self.config).move_cases([(old, (old[0], eval_id))])

    def replace_case(self, case: int, eval_id: str, text: str) -> None:
        """Replaces the JSON text of a case, which has this id in it; the text stays as it is."""
        self.rename_case(case, eval_id)
        list_at(self.data, self.path)[case] = StoredCase(text)

    @property
    def proposed_id(self) -> str:
        """An id for a new case: `case_3` for the third; the next number where that is taken."""
        ids = set(self.eval_ids)
        return free_id("case", len(ids) + 1, ids)

    # Cases

    def add_case(self, index: int | None = None, eval_id: str = "", text: str = "") -> None:
        """A case with one turn, in which the user says `text`, before the one at `index`, else at the end."""
        turn = _turn(self.data, self.path, {"text": text})
        fields = {"eval_id": eval_id or self.proposed_id, "conversation": [turn]}
        self.insert_case(in_style(self.data, self.path, fields), index)

    def insert_case(
        self, case: dict[str, Any], index: int | None = None, marks: Mapping[int, TurnMode] | None = None
    ) -> None:
        """A case as it is to be written, before the one at `index`, else at the end, and the marks of its
        turns."""
        insert(self.data, self.path, self.count if index is None else index, case)
        References(self.config).mark_turns((self.eval_set_id, case.get("eval_id", "")), marks or {})

    def delete_cases(self, cases: Sequence[int]) -> None:
        """Deletes cases with the marks and rules that name them."""
        gone, ids = set(cases), self.eval_ids
        left = {eval_id for number, eval_id in enumerate(ids) if number not in gone}
        self._remove(gone)
        References(self.config).remove_cases(self.eval_set_id, {ids[number] for number in gone} - left)

    def _remove(self, cases: Collection[int]) -> None:
        for case in sorted(cases, reverse=True):
            remove(self.data, (*self.path, case))

    def move_cases(self, moves: Iterable[tuple[int, int]]) -> None:
        """Moves cases one after the other, each from an index to its index afterwards."""
        for index, to in moves:
            move(self.data, self.path, index, to)

    def copy_to(self, target: SetEditor, cases: Sequence[int], index: int | None = None) -> None:
        """Copies of several cases, in their order, before the target's case at `index`, else at its end.

        A copy whose id is taken there gets another one. Marks and rules come along, where the target has a
        config. The target may be this set, which else is not changed.
        """
        pairs = self._renamings(target, cases)
        is_shared = self.config is target.config
        references = References(self.config).copied(pairs, elsewhere=not is_shared)
        self._insert_copies(target, cases, pairs, index)
        if target.config is not None:
            References(target.config).add_copied(references)

    def move_to(self, target: SetEditor, cases: Sequence[int], index: int | None = None) -> None:
        """Moves cases to another set, with the references to them in its config."""
        if self.config is not target.config:
            self.copy_to(target, cases, index)
            self.delete_cases(cases)
            return
        pairs = self._renamings(target, cases)
        self._insert_copies(target, cases, pairs, index)
        self._remove(cases)
        References(self.config).move_cases(pairs)

    def _renamings(self, target: SetEditor, cases: Sequence[int]) -> list[tuple[CaseRef, CaseRef]]:
        """The pairs of each case's reference in its set and in the target."""
        existing = set(target.eval_ids)
        pairs = []
        for case in sorted(set(cases)):
            old = self.case(case).eval_id
            new = copy_id(old, existing) if old in existing else old
            existing.add(new)
            pairs.append(((self.eval_set_id, old), (target.eval_set_id, new)))
        return pairs

    def _insert_copies(
        self,
        target: SetEditor,
        cases: Sequence[int],
        pairs: Sequence[tuple[CaseRef, CaseRef]],
        index: int | None,
    ) -> None:
        editors = [self.case(case) for case in sorted(set(cases))]
        first = target.count if index is None else index
        for at, (editor, (_, (_, new))) in enumerate(zip(editors, pairs, strict=True), first):
            key = str(editor.field_path("eval_id")[-1])
            value = without_original(editor.value)
            insert(target.data, target.path, at, {**value, key: new} if value.get(key) != new else value)


EditBuilder = Callable[[SetEditor], object]
"""Changes a copy of a set and of the config beside it."""
