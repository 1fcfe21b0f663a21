"""A received session as lines and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from evaltui.core.compare.explain import summary
from evaltui.core.model.outcome import MetricResult
from evaltui.runs.sessions import Pattern, ScoredSession, pattern_in_words
from evaltui.text.figures import counted
from evaltui.text.lines import Line, wrap
from evaltui.text.lines import cut as cut_line
from evaltui.text.outcomes import glyph
from evaltui.text.values import cut, visible

_MAX_ID = 24


def session_lines(session: ScoredSession, width: int) -> Iterator[Line]:
    """The lines of a session: its case and the reason for its outcome, then further remarks."""
    name = visible(cut(session.id, _MAX_ID))
    line: Line = [glyph(session.status), (f" {name}  ", "")]
    line.append((session.case_in_words, "" if session.case else "warning"))
    line.append((f"  {session.why}", "" if session.result else "muted"))
    yield cut_line(line, width)
    for pattern in session.new_patterns:
        yield from wrap([("    new trajectory  ", "warning"), (pattern_in_words(pattern), "")], width)
    for remark in session.remarks:
        yield from wrap([("    note  ", "warning"), (visible(remark), "muted")], width)


def session_json(session: ScoredSession) -> dict[str, Any]:
    """The JSON data of a session for `evaltui listen --format json`; unknown values are null."""
    result = session.result
    return {
        "session": session.id,
        "messages": list(session.messages),
        "case": {"path": session.case.path, "eval_id": session.case.eval_id} if session.case else None,
        "paired": session.is_paired,
        "status": result.status.value if result else None,
        "summary": summary(result) if result else None,
        "metrics": [_metric(part) for part in result.metrics] if result else [],
        "problem": session.problem or None,
        "new_trajectories": [list(part) for part in session.new_patterns],
        "log": str(session.log) if session.log else None,
        "remarks": list(session.remarks),
    }


def _metric(metric: MetricResult) -> dict[str, Any]:
    return {
        "name": metric.name,
        "status": metric.status.value,
        "score": metric.score,
        "threshold": metric.threshold,
        "reason": metric.reason or None,
    }


def end_lines(counts: Sequence[tuple[Pattern, int]], width: int) -> Iterator[Line]:
    """The trajectories that no case has, each with the number of its sessions."""
    for pattern, count in counts:
        line: Line = [("new trajectory  ", "warning"), (pattern_in_words(pattern), "")]
        yield from wrap([*line, (f"  {counted(count, 'session')}", "muted")], width)
