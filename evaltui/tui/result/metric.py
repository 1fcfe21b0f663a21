"""A metric of a result in full: what it says of each turn, its criterion, and what it needs."""

from __future__ import annotations

from evaltui.core.compare.explain import error_text
from evaltui.core.compare.judged import was_judged
from evaltui.core.metrics.registry import METRICS
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.outcome import MetricResult
from evaltui.text.figures import score_figures, show_number
from evaltui.text.lines import Line
from evaltui.text.outcomes import ROLES, WORDS, glyph
from evaltui.text.plots import bar
from evaltui.text.values import visible
from evaltui.tui.result.judged import ways, write_all_findings
from evaltui.tui.widgets.writer import Page, write_json

_BAR = 24


def card_of(metric: str) -> str:
    """What a metric is called among the folds of a page."""
    return f"card {metric}"


def write_metric(page: Page, metric: MetricResult, config: EvalConfig) -> None:
    """What a metric means and needs, its scores, every vote of its judge, and its criterion."""
    page.blank()
    page.folds[len(page.lines)] = card_of(metric.name)
    page.section((visible(metric.name), "bold"))
    info = METRICS.get(metric.name)
    if info is not None:
        page.text([(info.meaning, "")], [("  ", "")])
        page.labelled("needs", [(", ".join(info.needs) or "nothing else", "muted")])
    if was_judged(metric):
        write_all_findings(page, metric)
    else:
        _write_scores(page, metric)
    _write_criterion(page, metric.name, config)


def _write_scores(page: Page, metric: MetricResult) -> None:
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


def _write_criterion(page: Page, name: str, config: EvalConfig) -> None:
    """What the config says of a metric."""
    asked = next((one for one in config.metrics() if one.metric_name == name), None)
    if asked is None or asked.criterion is None:
        page.row(("  Not in the criteria of this run", "muted"))
        return
    if asked.custom_function_path:
        page.labelled("function", [(visible(asked.custom_function_path), "function")])
    if name in config.evaltui.optional:
        page.labelled("optional", [("a case passes without it", "")])
    write_json(page, {name: asked.criterion.model_dump(by_alias=False, exclude_defaults=True)})
