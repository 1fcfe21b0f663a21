"""The page: what ran, the list of cases, and those cases that need no script to be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC

from evaltui.core.cost.cost_lines import estimate, is_worth_telling, model_lines
from evaltui.reports.html.bodies import Bodies
from evaltui.reports.html.painting import Verdict
from evaltui.reports.html.rows import Changes, ListedSet, listed_sets, rows, status_counts
from evaltui.reports.html.templates import environment, markup, own_text, policy
from evaltui.reports.model import RunReport
from evaltui.reports.tag_totals import tag_totals
from evaltui.text.figures import counted, show_duration, show_number
from evaltui.text.lines import Line
from evaltui.views.comparison import comparison_lines

_COMPARISON_WIDTH = 100


def html_report(report: RunReport) -> Iterator[str]:
    """The text of one file: styles, script and data are part of it, and its policy forbids all else."""
    sets, changes = listed_sets(report), Changes.of(report)
    bodies = Bodies(report)
    bodies.write(sets)
    script, style = own_text("report.js"), own_text("report.css")
    in_sets = Counter(one.status for listed in sets for one in listed.summaries)
    tags = Counter(
        tag for one in sets for case in one.summaries for tag in one.eval_set.tags.get(case.eval_id, ())
    )
    return (
        environment()
        .get_template("report.html.j2")
        .generate(
            report=report,
            title=_title(report),
            verdict=Verdict(report.result.status),
            facts=dict(_facts(report)),
            counts=status_counts(Counter(case.status for case in report.summaries)),
            chips=status_counts(in_sets),
            changes=changes.chips(sets),
            costs=_costs(report),
            comparison=_comparison(report),
            tags=tag_totals(report),
            tag_chips=sorted(tags.items()),
            sets=sets,
            rows=lambda listed: rows(listed, changes),
            bodies=bodies.html,
            places=bodies.places,
            blocks=bodies.blocks(),
            opened=_first_to_open(sets),
            script=markup(script),
            style=markup(style),
            policy=policy(style, script),
        )
    )


def _first_to_open(sets: Sequence[ListedSet]) -> str:
    """The anchor of the first case that did not pass; "" without one."""
    anchors = (
        anchor
        for listed in sets
        for anchor, one in zip(listed.anchors, listed.summaries, strict=True)
        if not one.passes
    )
    return next(anchors, "")


def _comparison(report: RunReport) -> list[Line]:
    return [] if report.comparison is None else list(comparison_lines(report.comparison, _COMPARISON_WIDTH))


def _costs(report: RunReport) -> list[Line]:
    """A line for each payer and model; the sum is among the facts."""
    return list(model_lines(report.spent, _COMPARISON_WIDTH))


def _title(report: RunReport) -> str:
    passed = sum(case.passes for case in report.summaries)
    return f"{show_number(passed)}/{counted(len(report.summaries), 'case')} passed · {report.agent}"


def _facts(report: RunReport) -> Iterator[tuple[str, str]]:
    """What ran, and how, as label and text."""
    yield "started", report.started.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    if report.seconds is not None:
        yield "took", show_duration(report.seconds)
    if found := report.rates:
        yield "pass rate", found.in_words
        if found.scores_in_words:
            yield "mean scores", found.scores_in_words
    if report.model:
        yield "model", report.model
    if report.python:
        yield "python", report.python
    if report.uses_recordings:
        yield "recordings", report.settings.record
    if any(vars(report.calls).values()):
        yield "calls", str(report.calls)
    spent = report.spent
    if spent is not None and is_worth_telling(spent):
        yield "cost", ", ".join(filter(None, [str(spent.cost), estimate(spent)]))
    if report.log:
        yield "log", report.log
