"""Whether a case, as JSON data, is another one than before: in what the agent is given, or at all."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from evaltui.core.model.aliases import spelt
from evaltui.core.model.fingerprints import fingerprint

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
