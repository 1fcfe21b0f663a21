"""Outcomes as text: a glyph, a word and a role for each status.

Statuses are compared as texts, so that a case without a result can be drawn without importing the models.
"""

from __future__ import annotations

from collections.abc import Mapping

from evaltui.text.figures import counted, show_number
from evaltui.text.lines import Line, Span

NOT_RUN = "NOT_RUN"
RUNNING = "RUNNING"
STALE = "STALE"

GLYPHS: Mapping[str, str] = {
    "PASSED": "✓",
    "FAILED": "✗",
    "ERROR": "!",
    "FLAKY": "≈",
    "NOT_EVALUATED": "–",
    "INFORMATIONAL": "·",
    NOT_RUN: "○",
    RUNNING: "◐",
}
WORDS: Mapping[str, str] = {
    "PASSED": "passed",
    "FAILED": "failed",
    "ERROR": "error",
    "FLAKY": "flaky",
    "NOT_EVALUATED": "not evaluated",
    "INFORMATIONAL": "measured",
    NOT_RUN: "not run",
    RUNNING: "running",
}
# What is green, red and yellow is an outcome, and nothing else is.
ROLES: Mapping[str, str] = {
    "PASSED": "success",
    "FAILED": "error",
    "ERROR": "error",
    "FLAKY": "warning",
    "NOT_EVALUATED": "warning",
    "INFORMATIONAL": "muted",
    NOT_RUN: "muted",
    RUNNING: "bold accent",
}
CALLS_NOT_CHECKED = "calls not checked"
CONTEXT_TURN = "context turn, not scored"
NO_CHECK = "no check of this response"
NO_SCORE = "no score from its function for this turn"
# Of kinds of expectations that a turn does not have.
UNSPECIFIED_REASONS: Mapping[str, str] = {
    "calls": "no reference trajectory, not checked",
    "responses": "no reference response, not checked",
}
# Why a metric is not to score a turn; other turns without a score could not be scored.
LEFT_OUT_REASONS = frozenset(
    (CALLS_NOT_CHECKED, CONTEXT_TURN, NO_CHECK, NO_SCORE, *UNSPECIFIED_REASONS.values())
)
# In the order in which they are counted on screen.
COUNTED_STATUSES = ("PASSED", "FAILED", "ERROR", "FLAKY", "NOT_EVALUATED")


# How a call or an argument differs: its mark and the role. What is expected is green, what came
# instead is red.
ROW_MARKS: Mapping[str, Span] = {
    "same": ("=", "muted"),
    "changed": ("≠", "error"),
    "moved": ("↕", "error"),
    "missing": ("−", "success"),
    "extra": ("+", "error"),
    "rule": ("≃", "muted"),
    "within": ("~", "warning"),
    "made": ("→", "tool"),
    "": (" ", ""),
}
"""Mark and role for each kind of two-sided row: operations of calls; `rule` and `within` for differences that
a rule or a threshold allows; `made` for calls without an expectation; "" for rows without a mark."""


def glyph(status: str) -> Span:
    return GLYPHS[status], ROLES[status]


def verdict(status: str) -> Line:
    """Glyph and word of a status: `✗ failed`."""
    return [(f"{GLYPHS[status]} {WORDS[status]}", ROLES[status])]


def count_text(status: str, number: int) -> str:
    """A number of cases with a status: `2 failed`, `1 error`, `3 errors`."""
    return counted(number, WORDS[status], "errors" if status == "ERROR" else WORDS[status])


def counts_line(by_status: Mapping[str, int]) -> Line:
    """The counts that are not 0, by status: `✓ 41 ✗ 5 ! 1 2 stale`."""
    line: Line = []
    for status in (*COUNTED_STATUSES, RUNNING, STALE, NOT_RUN):
        if number := by_status.get(status, 0):
            line += [("  ", "")] if line else []
            if status == STALE:
                line.append((f"{show_number(number)} stale", "muted"))
            else:
                line.append((f"{GLYPHS[status]} {show_number(number)}", ROLES[status]))
    return line
