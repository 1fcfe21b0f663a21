"""What a run says of its sets and cases in a line."""

from __future__ import annotations

from evaltui.core.model.outcome import CaseResult
from evaltui.runs.run_header import SelectedSet
from evaltui.text.figures import UNKNOWN
from evaltui.text.lines import Span
from evaltui.text.outcomes import glyph
from evaltui.text.values import visible


def outcome_span(case: CaseResult) -> Span:
    """`✗ 3/5`: the verdict, and of several repeats how many passed."""
    mark, role = glyph(case.status)
    several = f" {case.passed_repeats}/{len(case.repeats)}" if len(case.repeats) > 1 else ""
    return f"{mark}{several}", role


def config_text(eval_set: SelectedSet) -> str:
    """The config of a set, and the criteria that it has by default: `defaults: response_match_score 0.8`."""
    criteria = (eval_set.config or {}).get("criteria", {})
    if eval_set.defaulted is None:
        logged = ", ".join(_criterion(name, criterion) for name, criterion in criteria.items())
        return f"as in the run log: {logged or UNKNOWN}"
    defaults = ", ".join(_criterion(name, criteria.get(name)) for name in eval_set.defaulted)
    if eval_set.config_path is None:
        unused = f"; not used: {visible(eval_set.not_used)}" if eval_set.not_used else ""
        return f"defaults: {defaults}{unused}" if defaults else "none"
    path = visible(eval_set.config_path)
    return f"{path}, by default: {defaults}" if defaults else path


def _criterion(name: str, value: object) -> str:
    threshold = value.get("threshold") if isinstance(value, dict) else value
    return visible(name if threshold is None else f"{name} {threshold}")
