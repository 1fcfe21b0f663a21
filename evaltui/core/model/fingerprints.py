"""Short texts that are equal where cases are, so that runs can be compared without keeping the cases."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from evaltui.core.model.json_values import spelt

if TYPE_CHECKING:
    from evaltui.core.model.eval_set import EvalCase

# What an agent gets to see of a case; everything else says what is expected of it.
_GIVEN = ("session_input", "conversation_scenario")


def given_fingerprint(case: Any) -> str:
    """Of what the agent gets to see of a case, which is JSON data in either spelling of keys."""
    given: dict[str, Any] = {name: _get(case, name) for name in _GIVEN}
    turns = _get(case, "conversation")
    given["said"] = [_get(turn, "user_content") for turn in turns] if isinstance(turns, list) else None
    return fingerprint(json.dumps(given, sort_keys=True, separators=(",", ":")))


def _get(data: Any, name: str) -> Any:
    return data.get(spelt(name, data)) if isinstance(data, dict) else None


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
