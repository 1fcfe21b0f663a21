"""Short texts that are equal where cases are, so that runs can be compared without keeping the cases."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evaltui.core.model.eval_set import EvalCase

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
