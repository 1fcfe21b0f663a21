"""Outcomes as reports and screens show them: a glyph, which says it without colour, a word and a role.

Statuses are their texts here, so that nothing heavy is imported to draw a case that has not run.
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
"""Mark and role of a row of two sides: as calls, for what a rule or a threshold allows (`rule`, `within`),
for calls of no expectation (`made`), and for rows without a mark."""


def glyph(status: str) -> Span:
    return GLYPHS[status], ROLES[status]


def verdict(status: str) -> Line:
    """`✗ failed`"""
    return [(f"{GLYPHS[status]} {WORDS[status]}", ROLES[status])]


def count_text(status: str, number: int) -> str:
    """`2 failed`, `1 error`, `3 errors`"""
    return counted(number, WORDS[status], "errors" if status == "ERROR" else WORDS[status])


def status_counts_line(by_status: Mapping[str, int]) -> Line:
    """`✓ 41  ✗ 5  ! 1  2 stale`, without zeros."""
    line: Line = []
    for status in (*COUNTED_STATUSES, RUNNING, STALE, NOT_RUN):
        if number := by_status.get(status, 0):
            line += [("  ", "")] if line else []
            if status == STALE:
                line.append((f"{show_number(number)} stale", "muted"))
            else:
                line.append((f"{GLYPHS[status]} {show_number(number)}", ROLES[status]))
    return line
