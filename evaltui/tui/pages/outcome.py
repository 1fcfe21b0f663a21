"""Outcomes in tones: what is green, red and yellow is an outcome, and nothing else is."""

from __future__ import annotations

from collections.abc import Mapping

from evaltui.text.lines import Line, Span
from evaltui.workbench.verdicts import COUNTED, GLYPHS, NOT_RUN, RUNNING, WORDS

TONE_OF: Mapping[str, str] = {
    "PASSED": "green",
    "FAILED": "red",
    "ERROR": "red",
    "FLAKY": "yellow",
    "NOT_EVALUATED": "yellow",
    "INFORMATIONAL": "dim",
    NOT_RUN: "dim",
    RUNNING: "accent",
}


def glyph(status: str) -> Span:
    return GLYPHS[status], TONE_OF[status]


def verdict(status: str) -> Line:
    """`✗ failed`"""
    return [(f"{GLYPHS[status]} {WORDS[status]}", TONE_OF[status])]


def counts(by_status: Mapping[str, int]) -> Line:
    """`✓ 41  ✗ 5  ! 1`, without what there is none of."""
    line: Line = []
    for status in COUNTED:
        if number := by_status.get(status, 0):
            line += [("  ", "")] if line else []
            line.append((f"{GLYPHS[status]} {number}", TONE_OF[status]))
    return line
