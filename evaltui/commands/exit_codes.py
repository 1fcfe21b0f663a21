"""The exit codes of runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evaltui.core.model.outcome import Status

WRONG_USE = 2
HAD_ERRORS = 3


def exit_code(verdicts: Iterable[Status]) -> int:
    """0 all passed (a flaky case by its policy), 1 some case failed, 3 errors or unevaluated cases and no
    failure, and where there is no case."""
    from evaltui.core.model.outcome import Status

    found = set(verdicts)
    if Status.FAILED in found:
        return 1
    return 0 if found == {Status.PASSED} else HAD_ERRORS
