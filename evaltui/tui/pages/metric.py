"""A metric of a result in full: what it says of each turn, its criterion, and what it needs."""

from __future__ import annotations

from collections.abc import Sequence

from evaltui.core.compare.explain import error_text
from evaltui.core.metrics.preflight import MetricCheck, check_lines
from evaltui.core.metrics.registry import METRICS
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.outcome import MetricResult
from evaltui.text.figures import score_figures, show_number
from evaltui.text.lines import Line
from evaltui.text.outcomes import ROLES, WORDS, glyph
from evaltui.text.plots import bar
from evaltui.text.values import visible
from evaltui.tui.pages.judged import ways
from evaltui.tui.pages.writer import Page, write_json

_BAR = 24


def write_scores(page: Page, metric: MetricResult) -> None:
    """The score of the case and of each turn, and why they are not better."""
    _write_score(page, "score", metric.score, metric)
    for number, turn in enumerate(metric.per_invocation):
        _write_score(page, f"turn {number + 1}", turn.score, metric, turn.status)
        if turn.reason:
            page.block([(visible(turn.reason), "muted")], 14)
    if of_ways := list(ways(metric)):
        page.labelled("matching", [(of_ways[0][0].lstrip(), of_ways[0][1]), *of_ways[1:]])
    reason = error_text(metric.error) if metric.error else visible(metric.reason)
    if reason and not any(turn.reason for turn in metric.per_invocation):
        page.blank()
        page.block([(reason, "")], 2)
    if metric.details and not of_ways:
        page.blank()
        for name, value in metric.details.items():
            shown = show_number(value)
            page.labelled(visible(name.replace("_", " ")), [(shown, "")])


def _write_score(
    page: Page, label: str, score: float | None, metric: MetricResult, status: str | None = None
) -> None:
    status = status or metric.status
    if score is None:
        page.labelled(label, [glyph(status), (f" {WORDS[status]}", "muted")])
        return
    figure, needed = score_figures(score, metric.threshold)
    line: Line = [glyph(status), (f" {figure}", f"bold {ROLES[status]}"), ("  ", "")]
    if 0 <= score <= 1 and (metric.threshold or 0) <= 1:
        line += bar(score, _BAR, ROLES[status], metric.threshold)
    if needed:
        line.append((f"  {'≤' if metric.lower_is_better else '≥'} {needed}", "muted"))
    page.labelled(label, line)


def write_criterion(page: Page, name: str, config: EvalConfig) -> None:
    """What a metric means, and what the config says of it."""
    info = METRICS.get(name)
    if info is not None:
        page.text([(info.meaning, "")])
        page.blank()
    asked = next((one for one in config.metrics() if one.metric_name == name), None)
    if asked is None or asked.criterion is None:
        page.row(("Not in the criteria of this run", "muted"))
        return
    if asked.custom_function_path:
        page.labelled("function", [(visible(asked.custom_function_path), "function")])
    if name in config.evaltui.optional:
        page.labelled("optional", [("a case passes without it", "")])
    write_json(page, {name: asked.criterion.model_dump(by_alias=False, exclude_defaults=True)})


def write_requirements(page: Page, name: str, checks: Sequence[MetricCheck]) -> None:
    """What a metric needs to be computed, and whether the run found that."""
    info = METRICS.get(name)
    needs = ", ".join(info.needs) if info is not None else ""
    page.labelled("needs", [(needs or "nothing else", "" if needs else "muted")])
    if of_metric := [check for check in checks if check.metric == name]:
        page.blank()
        page.lines += check_lines(of_metric, page.width, every=True)
