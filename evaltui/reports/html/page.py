"""The HTML page of a run: facts, the list of cases, and details of cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from evaltui.core.cost.cost_lines import model_lines
from evaltui.reports.html.bodies import Bodies
from evaltui.reports.html.painting import Verdict
from evaltui.reports.html.rows import Changes, ListedSet, listed_sets, rows, status_counts
from evaltui.reports.html.templates import environment, markup, own_text, policy
from evaltui.runs.report import RunReport
from evaltui.text.figures import counted, show_number
from evaltui.views.comparison import comparison_lines
from evaltui.views.run import failure_lines, run_facts

# Cells of a line of costs, failures and the comparison.
_WIDTH = 100


def html_report(report: RunReport) -> Iterator[str]:
    """The HTML text in pieces, for one file with styles, script and data, and a policy that forbids
    everything else."""
    sets, changes = listed_sets(report), Changes.of(report)
    bodies = Bodies(report)
    bodies.write(sets)
    script, style = own_text("report.js"), own_text("report.css")
    in_sets = Counter(summary.status.value for listed in sets for summary in listed.summaries)
    tags = Counter(
        tag
        for listed in sets
        for summary in listed.summaries
        for tag in listed.eval_set.tags.get(summary.eval_id, ())
    )
    comparison, cases = report.comparison, counted(len(report.summaries), "case")
    return (
        environment()
        .get_template("report.html.j2")
        .generate(
            report=report,
            title=f"{show_number(report.totals.passed)}/{cases} passed · {report.agent}",
            verdict=Verdict(report.status),
            facts=run_facts(report),
            counts=status_counts(report.totals.by_status),
            chips=status_counts(in_sets),
            changes=changes.chips(sets),
            costs=list(model_lines(report.spent, _WIDTH)),
            comparison=list(comparison_lines(comparison, _WIDTH)) if comparison else [],
            failures=list(failure_lines(report.failures, _WIDTH)),
            tags=report.tags,
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
    """The anchor of the first case that did not pass; "" without such a case."""
    anchors = (
        anchor
        for listed in sets
        for anchor, summary in zip(listed.anchors, listed.summaries, strict=True)
        if not summary.passes
    )
    return next(anchors, "")
