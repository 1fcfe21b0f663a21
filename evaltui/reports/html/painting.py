"""Filters of the templates: outcomes, two-sided rows, texts and tracebacks as styled lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from evaltui.text.lines import Line
from evaltui.text.outcomes import GLYPHS, ROLES, ROW_MARKS, WORDS
from evaltui.text.syntax import code_lines
from evaltui.text.word_diff import WordOp
from evaltui.views.judged import JudgeFindings
from evaltui.views.rows import ABSENT, Row, common_words, cut_middle, labelled_sides

# The JSON report has longer ones in full.
_MAX_VALUE = 2_000
_MAX_TEXT = 20_000
_MAX_SAME = 1_000
_FULL_TEXT_PLACE = ", in the JSON report"
_WORD_ROLES: Mapping[WordOp, str] = {"same": "", "removed": "exp-hi", "added": "act-hi"}


@dataclass(frozen=True)
class Verdict:
    """A status with its glyph, role and word."""

    status: str

    @property
    def glyph(self) -> str:
        return GLYPHS[self.status]

    @property
    def role(self) -> str:
        return ROLES[self.status]

    @property
    def word(self) -> str:
        return WORDS[self.status]


def mark(row: Row) -> tuple[str, str]:
    return ROW_MARKS[row.op]


def percent(value: float | None) -> float | None:
    """A score as a percentage of the range from 0 to 1; None for a score outside of it."""
    return round(100 * value, 1) if value is not None and 0 <= value <= 1 else None


def long_text(text: str) -> str:
    return cut_middle(text, _MAX_TEXT, _FULL_TEXT_PLACE)


def traceback(text: str) -> Sequence[Line]:
    return code_lines(text.rstrip("\n"), "pytb") if text.strip() else ()


def judged_lines(judged: JudgeFindings) -> Iterator[Line]:
    """A line for every rubric, sentence or vote, with its reason."""
    for rows in judged.rows:
        for head, text in rows:
            yield [*head, *text]
    if not judged.findings and judged.scored.reason:
        yield [(judged.scored.reason, "muted")]


def sides(row: Row) -> tuple[Line | None, Line | None]:
    """Both sides of a row as lines; None for an absent side."""
    if row.kind in ("call", "argument", "state"):
        return labelled_sides(row, _MAX_VALUE)
    parts = common_words(row.expected, row.actual) if row.is_change else ()
    if parts:
        by_side = ([part for part in parts if part[0] != other] for other in ("added", "removed"))
        left, right = (_labelled_line(row, _mark_words(texts)) for texts in by_side)
        return left, right
    role = "muted" if row.kind == "unscored" else ""
    lines = [
        None if text is ABSENT else _labelled_line(row, [(long_text(text), role)])
        for text in (row.expected, row.actual)
    ]
    return lines[0], [(row.instead, "error")] if row.instead else lines[1]


def _labelled_line(row: Row, line: Line) -> Line:
    return [(f"{row.label}: ", "muted"), *line] if row.label else line


def _mark_words(parts: Sequence[tuple[WordOp, str]]) -> Line:
    """The words of a side with marked changes; in a long text, equal words between differences are omitted
    first."""
    most = _MAX_SAME if sum(len(text) for _, text in parts) > _MAX_TEXT else _MAX_TEXT
    return [
        (cut_middle(text, most if op == "same" else _MAX_TEXT, _FULL_TEXT_PLACE), _WORD_ROLES[op])
        for op, text in parts
    ]
