"""The verdicts on the variants of a matrix as lines: better, worse or undecided, with the price of both."""

from __future__ import annotations

from collections.abc import Iterator

from evaltui.core.compare.matrix import Matrix
from evaltui.core.compare.totals import Totals
from evaltui.core.compare.variant_verdict import Answer, VariantVerdict
from evaltui.text.figures import UNKNOWN, counted, short_list, show_number, show_p, show_score
from evaltui.text.lines import Line, Span
from evaltui.text.values import visible

_ROLES: dict[Answer, str] = {"better": "success", "worse": "error", "undecided": "warning", "same": ""}


def verdict_lines(matrix: Matrix) -> Iterator[Line]:
    """The verdict on each variant against the base: its cases, its metrics, the judges, the price."""
    base = visible(matrix.name(matrix.base))
    for place, verdict in enumerate(matrix.verdicts):
        if verdict is not None:
            head: Line = [(visible(matrix.name(place)), "bold"), (f" against {base}: ", "")]
            yield [*head, answer_span(verdict.answer), *_p(verdict.p)]
            yield [("  cases  ", "muted"), *case_counts(verdict)]
            yield from _metrics(verdict)
            yield from _judges(verdict)
            yield [("  price  ", "muted"), (_prices(matrix.totals[matrix.base], matrix.totals[place]), "")]


def answer_span(answer: Answer) -> Span:
    """The answer of a verdict: `better`."""
    return answer, f"bold {_ROLES[answer]}".strip()


def _p(p: float) -> Line:
    return [(f", {show_p(p)}", "muted")] if p < 1 else []


def case_counts(verdict: VariantVerdict, *, with_names: bool = True) -> Line:
    """`1 better (c01), 3 worse (c02, c03 and c04), 1 undecided (c05), 7 the same`"""
    groups: tuple[tuple[Answer, tuple[str, ...]], ...]
    groups = ("better", verdict.better), ("worse", verdict.worse), ("undecided", verdict.undecided)
    line: Line = []
    for answer, names in groups:
        line += [(f"{show_number(len(names))} {answer}", _ROLES[answer] if names else "muted")]
        line += [(f" ({short_list([visible(name) for name in names])})", "")] if names and with_names else []
        line += [(", ", "")]
    return [*line, (f"{show_number(verdict.same)} the same", "")]


def _metrics(verdict: VariantVerdict) -> Iterator[Line]:
    for metric in verdict.metrics:
        means = f"{show_score(metric.base)} → {show_score(metric.variant)}, "
        counts = f", {show_number(metric.better)} better, {show_number(metric.worse)} worse"
        yield [
            (f"  {visible(metric.metric)}  ", "muted"),
            (means, ""),
            (metric.answer, _ROLES[metric.answer]),
            (f"{counts} of {counted(metric.cases, 'case')}", "muted"),
            *_p(metric.p),
        ]


def _judges(verdict: VariantVerdict) -> Iterator[Line]:
    """Whether the judge was the same in both, and which it is."""
    if not verdict.judges:
        return
    names = short_list([visible(judge) for judge in dict.fromkeys(verdict.judges.values())])
    same = ("same in both", "") if verdict.judge_is_same else ("not the judge of the base", "warning")
    yield [("  judge  ", "muted"), (f"{names}, ", ""), same]


def _prices(base: Totals, variant: Totals) -> str:
    """`$0.0016 → $0.0014, per run $0.000013 → $0.000012`: of the agent, without judges."""
    sides = [
        (UNKNOWN, UNKNOWN)
        if totals.cost is None or not totals.runs
        else (totals.cost.in_words, totals.cost.shared_by(totals.runs).in_words)
        for totals in (base, variant)
    ]
    whole, each = (" → ".join(side) for side in zip(*sides, strict=True))
    return whole if base.runs == variant.runs else f"{whole}, per run {each}"
