"""The result of a case: why, the metrics, and every turn beside its expectations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len

from evaltui.core.compare.explain import error_text, sentence
from evaltui.core.compare.judged import judge_line, judged_in, was_judged
from evaltui.core.compare.repeats import TrajectoryGroup, in_words, pass_rates, trajectory_groups
from evaltui.core.model.eval_set import EvalCase, user_text
from evaltui.core.model.outcome import (
    CallDiff,
    CaseResult,
    ErrorInfo,
    Expectation,
    MetricResult,
    Status,
    TurnResult,
)
from evaltui.text.lines import Line, Span, cells, pad
from evaltui.text.outcomes import WORDS, glyph, verdict
from evaltui.text.plots import bar
from evaltui.text.values import cut, scores, visible, visible_block
from evaltui.text.word_diff import MARKS, WordOp, much_in_common, words
from evaltui.tui.pages.runs import write_history_rows
from evaltui.tui.pages.turns import (
    MARGIN,
    write_call,
    write_change,
    write_conversation,
    write_judged,
    write_made_call,
)
from evaltui.tui.pages.writer import LABEL, SIDE_BY_SIDE, Page, RepeatAt, write_error
from evaltui.workbench.outcomes import CasePast
from evaltui.workbench.results import turn_status
from evaltui.workbench.state import CaseOutcome, DifferenceAt

# More kinds of trajectories than this are noise, and so are longer lines of one.
_MOST_GROUPS = 8
_LONGEST_CALLS = 2_000
_MOST_NUMBERS = 6
# Cells of the glyph of a run.
_GLYPH = 3


def repeats_verdict(result: CaseResult) -> list[Span]:
    """`≈ 3/5 FLAKY, fails policy all`"""
    meets = "meets" if result.policy_met else "fails"
    mark, role = glyph(result.status)
    return [
        (f"{mark} {result.passed_repeats}/{len(result.repeats)} {result.status.value}", role),
        (f"  {meets} policy {result.policy}", ""),
    ]


def write_repeats(page: Page, scored: CaseOutcome) -> None:
    """How each of them came out, what that says of the next ones, and which calls they made."""
    result = scored.result
    _write_runs(page, result, scored.repeat, chosen=scored.chosen is not None)
    rates = pass_rates(result)
    page.labelled("k", [("".join(f"{rate.k:<6}" for rate in rates), "muted")])
    page.labelled("pass@k", [("".join(f"{rate.at_least_one:<6.2f}" for rate in rates), "")])
    page.labelled("pass^k", [("".join(f"{rate.all:<6.2f}" for rate in rates), "")])
    groups = trajectory_groups(result)
    if len(groups) == 1:
        page.labelled("calls", [("the same in every run", "")])
        return
    page.labelled("calls", [(f"{len(groups)} different trajectories", "")])
    for group in groups[:_MOST_GROUPS]:
        _write_group(page, group, scored.repeat)
    if len(groups) > _MOST_GROUPS:
        page.labelled("", [(f"and {len(groups) - _MOST_GROUPS} more", "muted")])


def _write_runs(page: Page, result: CaseResult, shown: int, *, chosen: bool) -> None:
    margin = 1 + LABEL
    in_row = max(1, (page.width - margin) // _GLYPH)
    for first in range(0, len(result.repeats), in_row):
        spans: list[Span] = [(pad("  runs" if first == 0 else "", margin), "muted")]
        for number in range(first, min(first + in_row, len(result.repeats))):
            mark, role = glyph(result.repeats[number].status)
            around = ("[", "]") if number == shown else (" ", " ")
            start = margin + (number - first) * _GLYPH
            page.repeats.append(RepeatAt(number, len(page.lines), start, start + _GLYPH))
            spans += [(around[0], "bold accent"), (mark, role), (around[1], "bold accent")]
        page.row(*spans)
    differ = len({repeat.status for repeat in result.repeats}) > 1
    which = ", the gravest" if differ and not chosen else ""
    page.row((" " * (margin + 1), ""), (f"run {shown + 1} is shown{which}: [ ] others", "muted"))


def _write_group(page: Page, group: TrajectoryGroup, shown: int) -> None:
    here = shown in group.repeats
    outcomes = [glyph(status) for status in dict.fromkeys(group.statuses)]
    numbers = ", ".join(str(number + 1) for number in group.repeats[:_MOST_NUMBERS])
    more = ", …" if len(group.repeats) > _MOST_NUMBERS else ""
    head: list[Span] = [
        ("  ▌ " if here else "    ", "bold accent"),
        (f"{len(group.repeats):>3}×  ", ""),
        *outcomes,
        (pad("", 3 - len(outcomes)), ""),
    ]
    page.text([(cut(in_words(group.calls), _LONGEST_CALLS), ""), (f"  run {numbers}{more}", "muted")], head)


EXPECTATIONS: dict[Expectation, str] = {
    "these calls": "expects these calls",
    "no calls": "must call nothing",
    "unspecified": "says nothing of calls: scored as no calls",
    "not checked": "calls are not checked",
    "context": "context: run, not scored",
    "simulated": "with a simulated user",
}
_LONGEST_TEXT = 20_000
_WAYS = ("EXACT", "IN_ORDER", "ANY_ORDER")
# So many equal calls in a row are worth a line, not more.
_MOST_EQUAL = 4
# Cells of the bar of a score.
_BAR = 10


def write_case_result(
    page: Page, scored: CaseOutcome, past: CasePast | None = None, *, unfolded: bool
) -> None:
    """`unfolded` shows equal calls in a row one by one, and what judges found of what passed; `past` is what
    is known of earlier runs."""
    result = scored.shown
    _write_verdict(page, scored)
    _write_metrics(page, result.metrics)
    write_history_rows(page, past, passed=result.status is Status.PASSED)
    if result.error:
        page.blank()
        write_error(page, result.error)
    for number, turn in enumerate(result.turns):
        _write_turn(page, result, number, turn, scored.case, unfolded)
    write_conversation(page, result, unfolded=unfolded)
    _write_state(page, result)
    _write_measured(page, result.metrics)
    _write_errors(page, result)


def _write_verdict(page: Page, scored: CaseOutcome) -> None:
    """Why; of a case that was run several times, what they say together and why the shown one came out so."""
    result = scored.result
    if len(result.repeats) < 2:
        why = sentence(result)
        page.text([(why, "")] if why else [], [*verdict(result.status), ("  ", "")])
        return
    page.row(*repeats_verdict(result))
    page.blank()
    write_repeats(page, scored)
    page.blank()
    shown = result.repeats[scored.repeat]
    why = sentence(shown)
    head: list[Span] = [(f"Run {scored.repeat + 1}", "bold"), ("  ", ""), *verdict(shown.status), ("  ", "")]
    page.text([(why, "")] if why else [], head)


def _write_metrics(page: Page, metrics: Sequence[MetricResult]) -> None:
    gating = [metric for metric in metrics if metric.status is not Status.INFORMATIONAL]
    if gating:
        page.blank()
        names = min(max(cell_len(visible(metric.name)) for metric in gating), page.width // 2)
        page.row((f"    {pad('metric', names)}  score  needs", "muted"))
    for metric in gating:
        _write_metric(page, metric, names)


def _write_metric(page: Page, metric: MetricResult, names: int) -> None:
    written = scores(metric.score, metric.threshold, metric.lower_is_better)
    score, _, needs = ("–" if metric.score is None else written).partition(", needs ")
    row = f" {pad(visible(metric.name), names)}  {score:>5}  {needs:>5}"
    mark, role = glyph(metric.status)
    # What does not fit is left out: the glyph and the figures say the same.
    line: Line = [("  ", ""), (mark, role), (row, "")]
    for more in ([("  ", ""), *_bar(metric, role)], [(f"  {WORDS[metric.status]}", "muted")]):
        line += more if cells([*line, *more]) <= page.width else []
    page.row(*line)
    reason = error_text(metric.error) if metric.error else visible(metric.reason)
    # What judges found is told turn by turn.
    if reason and not (metric.status in (Status.PASSED, Status.FAILED) and was_judged(metric)):
        page.block([(reason, "muted")], 6)
    if metric.judge is not None:
        page.block([(judge_line(metric.judge), "muted")], 6)
    if ways := [(way, metric.details[way]) for way in _WAYS if metric.details.get(way) is not None]:
        _write_ways(page, ways, metric)


def _bar(metric: MetricResult, role: str) -> Line:
    """The score and what it must reach, where it is a share."""
    if metric.score is None or metric.threshold is None or max(metric.score, metric.threshold) > 1:
        return [(" " * _BAR, "")]
    return bar(metric.score, _BAR, role, metric.threshold)


def _write_ways(page: Page, ways: Sequence[tuple[str, float | None]], metric: MetricResult) -> None:
    """What comes out by each way to compare calls: so one sees what relaxing would do."""
    spans: list[Span] = [("      ", "")]
    for way, score in ways:
        passes = score is not None and metric.threshold is not None and score >= metric.threshold
        spans += [(f"{way} ", "muted"), glyph(Status.PASSED if passes else Status.FAILED), ("   ", "")]
    page.row(*spans)


def _write_measured(page: Page, metrics: Sequence[MetricResult]) -> None:
    """The values that have no verdict."""
    values = [
        f"{visible(metric.name)} {metric.score:.4g}"
        for metric in metrics
        if metric.status is Status.INFORMATIONAL and metric.score is not None
    ]
    if values:
        page.blank()
        page.row(("Measured", "bold"), ("  without a verdict", "muted"))
        page.block([(", ".join(values), "muted")], 2)


def _write_turn(
    page: Page, result: CaseResult, number: int, turn: TurnResult, case: EvalCase, unfolded: bool
) -> None:
    page.blank()
    page.turns[number] = len(page.lines)
    status = turn_status(result, number)
    head: list[Span] = [(f"Turn {number + 1}", "bold"), ("  ", "")]
    if status:
        head += [*verdict(status), ("  ", "")]
    page.row(*head, (EXPECTATIONS[turn.expectation], "muted"))
    if asked := turn.user or _user_text(case, number):
        page.labelled("user", [(_shown(asked), "")])
    if turn.expectation == "simulated":
        for diff in turn.calls:
            write_made_call(page, diff)
    else:
        _write_calls(page, turn, number, unfolded)
    for author, text in turn.unscored:
        page.labelled(
            "before", [(f"{visible(author)}: {_shown(text)}  (said before the answer, not scored)", "muted")]
        )
    write_answers(page, turn, number)
    for metric in judged_in(result.metrics, number):
        write_judged(page, metric, number, unfolded=unfolded)


def _write_calls(page: Page, turn: TurnResult, number: int, unfolded: bool) -> None:
    if turn.calls and page.width >= SIDE_BY_SIDE:
        page.columns([("expected", "muted")], [("actual", "muted")], [(" " * MARGIN, "")])
    for rows in _folded(turn.calls, unfolded):
        if len(rows) > _MOST_EQUAL:
            page.row(("    = ", "muted"), (f"{len(rows)} calls as expected: space shows them", "muted"))
            continue
        for row in rows:
            write_call(page, turn.calls[row], number, row, checked=turn.checks_calls)


def _folded(calls: Sequence[CallDiff], unfolded: bool) -> Iterator[range]:
    """The rows in groups: those that are as expected, one after the other, and every other alone."""
    start = 0
    for row, diff in enumerate(calls):
        if unfolded or diff.op != "same" or diff.args:
            if start < row:
                yield range(start, row)
            yield range(row, row + 1)
            start = row + 1
    if start < len(calls):
        yield range(start, len(calls))


def _user_text(case: EvalCase, number: int) -> str:
    turns = case.conversation or []
    return user_text(turns[number].user_content) if number < len(turns) else ""


def write_answers(page: Page, turn: TurnResult, number: int) -> None:
    """The expected answer beside the actual one, word for word where they have much in common."""
    expected, actual = turn.response.expected, turn.response.actual
    label = "answer" if turn.response.score is None else f"answer {turn.response.score:.2f}"
    if not expected and not actual:
        return
    first: list[Span] = [(f"  {pad(label, LABEL)}", "muted")]
    if turn.expectation == "simulated":
        page.text([(_shown(actual or ""), "")], first)
    elif not expected or turn.expectation == "context":
        page.text([(_shown(actual or ""), ""), ("  (no answer is expected)", "muted")], first)
    elif expected == actual:
        page.text([(_shown(actual), "")], first)
    else:
        at = DifferenceAt("answer", number)
        with page.difference(at, f"turn {number + 1} · answer", {"expected": expected, "actual": actual}):
            if not actual:
                page.text([("none, expected was  ", "error"), (_shown(expected), "")], first)
            else:
                _write_difference(page, expected, actual, first)


def _write_difference(page: Page, expected: str, actual: str, first: list[Span]) -> None:
    parts = words(expected, actual)
    if much_in_common(parts):
        page.text(list(_marked(parts)), first)
    else:
        removed, added = MARKS["removed"], MARKS["added"]
        page.text([(f"{removed[0]}{_shown(expected)}{removed[1]}", removed[2])], first)
        page.block([(f"{added[0]}{_shown(actual)}{added[1]}", added[2])], 2 + LABEL)


def _marked(parts: Sequence[tuple[WordOp, str]]) -> Iterator[Span]:
    touching = False
    for op, text in parts:
        start, end, role = MARKS[op]
        words_only = text.strip() or text
        before, after = text[: text.index(words_only)], text[text.index(words_only) + len(words_only) :]
        # In the texts they touch; for the eye they are two words.
        gap = " " if op == "added" and touching else ""
        yield f"{gap}{_shown(before)}", ""
        yield f"{start}{_shown(words_only)}{end}", role
        yield _shown(after), ""
        touching = op == "removed" and not after


def _shown(text: str) -> str:
    """A text of several lines as the terminal may have it, without its middle where it is very long."""
    if len(text) > _LONGEST_TEXT:
        half = _LONGEST_TEXT // 2
        text = f"{text[:half]}\n… {len(text) - 2 * half} characters …\n{text[-half:]}"
    return visible_block(text)


def _write_errors(page: Page, result: CaseResult) -> None:
    """Those of metrics; what several have in common, such as a judge that does not answer, once."""
    by_error: dict[ErrorInfo, list[MetricResult]] = {}
    for metric in result.metrics:
        if metric.error and metric.error != result.error:
            by_error.setdefault(metric.error, []).append(metric)
    for error, metrics in by_error.items():
        page.blank()
        what = "raised" if metrics[0].judge is None else "could not be judged"
        page.text([(f"{', '.join(visible(metric.name) for metric in metrics)} {what}", "bold")])
        write_error(page, error)


def _write_state(page: Page, result: CaseResult) -> None:
    if not result.state:
        return
    page.blank()
    page.row(("Final state", "bold"), ("  is not as expected", "muted"))
    paths = min(28, max(cell_len(visible(diff.path)) for diff in result.state))
    for diff in result.state:
        head: list[Span] = [("  ≠ ", "error"), (f"{pad(visible(diff.path), paths)}  ", "")]
        sides = {"expected": diff.expected, "actual": diff.actual}
        at = DifferenceAt("state", path=diff.path)
        with page.difference(at, f"final state · {visible(diff.path)}", sides):
            write_change(page, head, diff.expected, diff.actual)
