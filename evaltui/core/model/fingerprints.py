"""Short texts that are equal where cases are, so that runs can be compared without keeping the cases."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evaltui.core.model.json_values import spelt

if TYPE_CHECKING:
    from evaltui.core.model.eval_set import EvalCase

# What an agent gets to see of a case; everything else says what is expected of it.
_GIVEN = ("session_input", "conversation_scenario")


@dataclass(frozen=True, slots=True)
class CasePrint:
    """Equal where cases are; `given` where only what is expected differs."""

    given: str
    whole: str


def case_print(case: Any) -> CasePrint:
    """Of a case in either spelling of keys."""
    given: dict[str, Any] = {name: _get(case, name) for name in _GIVEN}
    turns = _get(case, "conversation")
    given["said"] = [_get(turn, "user_content") for turn in turns] if isinstance(turns, list) else None
    return CasePrint(_print(given), _print(case))


def _get(data: Any, name: str) -> Any:
    return data.get(spelt(name, data)) if isinstance(data, dict) else None


def _print(data: Any) -> str:
    return fingerprint(json.dumps(data, sort_keys=True, separators=(",", ":")))


_TIMES_AND_IDS: dict[str, Any] = {
    "creation_timestamp": True,
    "conversation": {
        "__all__": {"invocation_id", "creation_timestamp", "duration", "model_duration", "tool_duration"}
    },
}


def case_fingerprint(case: EvalCase) -> str:
    """Of everything a case says: what the user does, what is expected, and where the session begins.

    How its file spells keys, and when it was written, makes no difference.
    """
    return fingerprint(case_text(case))


def case_text(case: EvalCase) -> str:
    """The JSON text that a case's fingerprint is of."""
    data = case.model_dump(mode="json", exclude_defaults=True, exclude=_TIMES_AND_IDS)
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


def fingerprint(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
