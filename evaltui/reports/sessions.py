"""A session that was received, as lines for people and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from evaltui.core.compare.explain import summary
from evaltui.core.model.outcome import MetricResult, Status
from evaltui.runs.sessions import Pattern, ScoredSession
from evaltui.text.figures import counted
from evaltui.text.lines import Line, wrap
from evaltui.text.lines import cut as cut_line
from evaltui.text.outcomes import glyph
from evaltui.text.values import cut, visible

_MOST_ID = 24
_MOST_MESSAGE = 50


def session_lines(session: ScoredSession, width: int) -> Iterator[Line]:
    """A line of the session, its case and why it came out so; below it what else is to be known."""
    name = visible(cut(session.id, _MOST_ID))
    status = session.result.status if session.result else Status.NOT_EVALUATED
    case = ""
    if session.case is not None:
        case = f"{'' if session.is_paired else 'like '}{visible(session.case.eval_id)}"
    line: Line = [glyph(status), (f" {name}  ", ""), (case or "no case", "" if case else "warning")]
    line.append((f"  {_why(session)}", "" if session.result else "muted"))
    yield cut_line(line, width)
    for pattern in session.new_patterns:
        yield from wrap([("    new trajectory  ", "warning"), (pattern_in_words(pattern), "")], width)
    for remark in session.remarks:
        yield from wrap([("    note  ", "warning"), (visible(remark), "muted")], width)


def _why(session: ScoredSession) -> str:
    said = next((f'"{visible(cut(one, _MOST_MESSAGE))}"' for one in session.messages if one), "")
    turns = counted(session.turns, "turn") if session.turns else ""
    if session.result is None:
        return "  ".join(filter(None, (turns, said, visible(session.problem))))
    if session.result.status is Status.PASSED:
        passed = sum(metric.status is Status.PASSED for metric in session.result.metrics)
        return "  ".join(filter(None, (f"{counted(passed, 'metric')} passed", summary(session.result), said)))
    return summary(session.result)


def pattern_in_words(pattern: Pattern) -> str:
    """`find_order → refund`"""
    return " → ".join(visible(name) for name in pattern)


def session_json(session: ScoredSession) -> dict[str, Any]:
    """One line of `evaltui listen --format json`; what is unknown is null."""
    result = session.result
    return {
        "session": session.id,
        "messages": list(session.messages),
        "case": {"path": session.case.path, "eval_id": session.case.eval_id} if session.case else None,
        "paired": session.is_paired,
        "status": result.status.value if result else None,
        "summary": summary(result) if result else None,
        "metrics": [_metric(one) for one in result.metrics] if result else [],
        "problem": session.problem or None,
        "new_trajectories": [list(one) for one in session.new_patterns],
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
    """The trajectories that no case has, with how many sessions have each."""
    for pattern, count in counts:
        line: Line = [("new trajectory  ", "warning"), (pattern_in_words(pattern), "")]
        yield from wrap([*line, (f"  {counted(count, 'session')}", "muted")], width)
