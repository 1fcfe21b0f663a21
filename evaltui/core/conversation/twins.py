"""Cases with the same conversation, such as a case that was imported twice."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pydantic import ValidationError

from evaltui.core.model.base_model import dump
from evaltui.core.model.eval_set import EvalCase, full_text
from evaltui.core.model.events import Json
from evaltui.core.model.stored_cases import StoredCase


@dataclass(frozen=True)
class Twin:
    """A case with the same user messages as another one."""

    eval_id: str
    is_same: bool
    """Whether its expectations and its initial state are also the same."""


def twin_of(case: Json, others: Iterable[StoredCase]) -> Twin | None:
    """The first of `others` that differs in its id only; else the first one with the same user messages; None
    without either."""
    draft = EvalCase.model_validate(case)
    messages = _user_messages(draft)
    spelled = _spellings(draft)
    alike: Twin | None = None
    for other in others:
        # A model of each case of a large set would take seconds.
        if not any(text in other.text for text in spelled):
            continue
        try:
            model = other.model()
        except ValidationError:
            continue
        if _user_messages(model) != messages:
            continue
        if _content(model) == _content(draft):
            return Twin(other.eval_id, is_same=True)
        alike = alike or Twin(other.eval_id, is_same=False)
    return alike


def _user_messages(case: EvalCase) -> list[str]:
    if case.conversation_scenario:
        return [" ".join(case.conversation_scenario.starting_prompt.split())]
    return [" ".join(full_text(turn.user_content).split()) for turn in case.conversation or ()]


def _spellings(case: EvalCase) -> set[str]:
    """How a JSON text may have the first word of the user."""
    words = (_user_messages(case) or [""])[0].split()
    first = words[0] if words else ""
    return {json.dumps(first, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}


def _content(case: EvalCase) -> tuple[Json, ...]:
    state = dump(case.session_input).get("state", {}) if case.session_input else {}
    scenario = dump(case.conversation_scenario) if case.conversation_scenario else {}
    return (state, scenario, *_turns(case))


def _turns(case: EvalCase) -> Iterator[Json]:
    for turn in case.conversation or ():
        data = dump(turn)
        yield {name: data.get(name) for name in ("user_content", "final_response", "intermediate_data")}
