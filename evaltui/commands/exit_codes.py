"""The exit codes of runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evaltui.core.model.outcome import Status

SOME_FAILED = 1
WRONG_USE = 2
HAD_ERRORS = 3
INTERRUPTED = 130
NOT_WRITTEN = 1
"""Exit code where nothing was written: declined, conflicts, or parts that `--strict` refuses to lose."""

# Of a run: what help and guide say.
CODES = {
    0: "all cases passed, flaky cases by the pass policy; or the shard has no case",
    SOME_FAILED: "some case failed",
    WRONG_USE: "usage error: unknown case, set or option, broken set, config or settings, no case selected "
    "(also --failed, --resume and --retry-errors with nothing left to run), unmet --require, "
    "calls that the budget cannot count; no case ran",
    HAD_ERRORS: "errors, metrics not evaluated, cases without a result or the budget reached, and no "
    "failure; or a report could not be written, or evaltui itself failed, with its traceback",
    INTERRUPTED: "interrupted; finished results are kept and reported",
}


def codes_in_words() -> str:
    return " ".join(f"{code} {meaning}." for code, meaning in CODES.items())


def exit_code(verdicts: Iterable[Status]) -> int:
    """0 all passed (a flaky case by its policy), 1 some case failed, 3 errors or unevaluated cases and no
    failure, and where there is no case."""
    from evaltui.core.model.outcome import Status

    statuses = set(verdicts)
    if Status.FAILED in statuses:
        return SOME_FAILED
    return 0 if statuses == {Status.PASSED} else HAD_ERRORS
