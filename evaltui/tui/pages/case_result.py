"""The result of a case: why, the metrics, every turn beside its expectations, and what else came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from evaltui.core.compare.judged import over_conversation
from evaltui.core.compare.repeats import in_words
from evaltui.core.compare.turn_verdicts import turn_status
from evaltui.core.model.eval_set import EvalCase, user_text
from evaltui.core.model.outcome import CaseResult, ErrorInfo, MetricResult, StateDiff, Status, TrajectoryGroup
from evaltui.core.model.problems import format_path
from evaltui.text.figures import UNKNOWN, counted, plural, show_duration, show_number, show_score
from evaltui.text.keys import key_of
from evaltui.text.lines import Line, Span, pad
from evaltui.text.outcomes import ROLES, glyph
from evaltui.text.syntax import JSON
from evaltui.text.values import cut, show_change, show_value, type_names, visible
from evaltui.tui.pages.calls import Row, outermost, write_row
from evaltui.tui.pages.history import write_history
from evaltui.tui.pages.judged import write_metrics
from evaltui.tui.pages.turns import write_turn
from evaltui.tui.pages.verdict import write_strip, write_verdict
from evaltui.tui.pages.writer import LABEL, NOT_FOLDED, Folding, Lines, Page, RepeatAt, write_error
from evaltui.workbench.agent_state import PrintedLine
from evaltui.workbench.histories import CasePast
from evaltui.workbench.state import CaseOutcome, DifferenceAt

# More kinds of trajectories than this are noise, and so are longer lines of one.
_MOST_GROUPS = 8
_LONGEST_CALLS = 2_000
_MOST_NUMBERS = 6
_MOST_PRINTED = 200
# Cells of the glyph of a repeat.
_GLYPH = 2
_MAX_VALUE = 400
_SECONDS = "invocation_duration_v1"
# Of these the sum over the turns is shown.
_TOTALS = {
    "tool_call_count_v1": "tool calls",
    "inference_call_count_v1": "model calls",
    "token_usage_v1": "tokens",
    _SECONDS: "time",
}


@dataclass(frozen=True)
class CaseShown:
    """A result and how it is shown."""

    scored: CaseOutcome
    past: CasePast | None = None
    """What is known of earlier runs; None while they are read."""
    folding: Folding = NOT_FOLDED
    height: int = 0
    """The rows that the page has: where all of it fits, what passed is open, too."""
    turn: int | None = None
    """The selected turn, from 0, which is open."""
    note: Sequence[Span] = ()
    """What is to be known of the result as a whole."""
    changed: Sequence[str] = ()
    """What changed after its run, as `Freshness` has it."""
    place: str = ""
    """Where the case is: `lights.evalset.json:88`."""
    printed: Sequence[PrintedLine] = ()
    """What the agent printed in the case."""
    strip_last: bool = False
    """Whether the metrics stand below the differences, as on a small screen."""
    messages: Mapping[int, str] | None = None
    """The user messages of the run by turn, from 0, where its case is not stored any more; None where it
    is."""

    @cached_property
    def case(self) -> EvalCase | None:
        """The case that the result was scored by; None where it is not stored any more."""
        return self.scored.case if self.messages is None else None

    def message(self, number: int) -> str:
        """The user message of a turn, from 0; "" where it is not known."""
        if self.case is None:
            return (self.messages or {}).get(number, "")
        turns = self.case.conversation or []
        return user_text(turns[number].user_content) if number < len(turns) else ""


def write_case_result(page: Page, shown: CaseShown) -> None:
    """What passed is folded, unless all of the page fits with it open, and with what stands above."""
    opened = Page(page.width, page.widest, page.marks, Lines(page.lines))
    _write(page, shown, fits=False)
    if len(page.lines) <= shown.height:
        _write(opened, shown, fits=True)
        if len(opened.lines) <= shown.height:
            page.take(opened)


def _write(page: Page, shown: CaseShown, *, fits: bool) -> None:
    scored = shown.scored
    result = scored.shown
    several = len(scored.result.repeats) > 1
    write_verdict(page, scored.result if several else result, list(shown.note))
    if several:
        page.blank()
        write_repeats(page, scored)
    if not shown.strip_last:
        write_strip(page, result, shown.past, stale=bool(shown.note))
    if result.error:
        page.blank()
        write_error(page, result.error)
    _write_turns(page, shown, result, fits=fits)
    if shown.strip_last:
        write_strip(page, result, shown.past, stale=bool(shown.note))
    write_metrics(page, result, shown.folding, fits=fits)
    _write_state(page, shown, result)
    _write_informational(page, result, shown.folding)
    passed = result.status is Status.PASSED
    write_history(page, shown.past, shown.folding, passed=passed, changed=shown.changed)
    _write_printed(page, shown)
    _write_errors(page, result)


def _write_turns(page: Page, shown: CaseShown, result: CaseResult, *, fits: bool) -> None:
    heads = shown.place, shown.scored.run.name
    for number in range(len(result.turns)):
        status = turn_status(result, number)
        usual = fits or status in ("FAILED", "ERROR") or number == shown.turn or _only(result, number)
        page.part(is_open=shown.folding.is_open(f"turn {number}", usual=usual))
        write_turn(page, result, shown.message(number), number, shown.folding, usual=usual, heads=heads)
    if result.stopped:
        page.blank()
        page.text([(visible(result.stopped), "muted")])


def _only(result: CaseResult, number: int) -> bool:
    """Whether nothing says which turn failed, so that all that differ are open."""
    if any(turn_status(result, other) in ("FAILED", "ERROR") for other in range(len(result.turns))):
        return False
    turn = result.turns[number]
    return result.status is not Status.PASSED and any(diff.op != "same" for diff in turn.calls)


# Repeats


def write_repeats(page: Page, scored: CaseOutcome) -> None:
    """How each of them came out, what that says of the next ones, and which calls they made."""
    result = scored.result
    _write_outcomes(page, result, scored.repeat, chosen=scored.chosen is not None)
    rates = result.pass_rates
    page.labelled("pass rate", [(str(result.rate or UNKNOWN), "")])
    page.labelled("k", [("".join(f"{rate.k:<6}" for rate in rates), "muted")])
    page.labelled("pass@k", [("".join(f"{show_score(rate.pass_at_k):<6}" for rate in rates), "")])
    page.labelled("pass^k", [("".join(f"{show_score(rate.pass_hat_k):<6}" for rate in rates), "")])
    groups = result.trajectories
    if len(groups) == 1:
        page.labelled("calls", [("the same in every repeat", "")])
        return
    page.labelled("calls", [(f"{len(groups)} distinct trajectories", "")])
    for group in groups[:_MOST_GROUPS]:
        _write_group(page, group, scored.repeat)
    if len(groups) > _MOST_GROUPS:
        page.labelled("", [(f"and {show_number(len(groups) - _MOST_GROUPS)} more", "muted")])


def _write_outcomes(page: Page, result: CaseResult, shown: int, *, chosen: bool) -> None:
    margin = 2 + LABEL
    in_row = max(1, (page.width - margin) // _GLYPH)
    for first in range(0, len(result.repeats), in_row):
        spans: list[Span] = [(pad("  repeats" if first == 0 else "", margin), "muted")]
        for number in range(first, min(first + in_row, len(result.repeats))):
            mark, role = glyph(result.repeats[number].status)
            start = margin + (number - first) * _GLYPH
            page.repeats.append(RepeatAt(number, len(page.lines), start, start + _GLYPH))
            spans += [(mark, "chip" if number == shown else role), (" ", "")]
        if first + in_row >= len(result.repeats):
            spans.append((f" {result.passed_repeats}/{len(result.repeats)}", f"bold {ROLES[result.status]}"))
        page.row(*spans)
    differ = len({repeat.status for repeat in result.repeats}) > 1
    worst = " (worst)" if differ and not chosen else ""
    of_all = f"repeat {shown + 1} of {len(result.repeats)}{worst}"
    page.labelled(
        "shown",
        [
            (of_all, "bold"),
            (f"   {key_of('previous_repeat')} {key_of('next_repeat')} previous, next", "muted"),
        ],
    )


def _write_group(page: Page, group: TrajectoryGroup, shown: int) -> None:
    outcomes = [glyph(status) for status in dict.fromkeys(group.statuses)]
    numbers = ", ".join(str(number + 1) for number in group.repeats[:_MOST_NUMBERS])
    more = ", …" if len(group.repeats) > _MOST_NUMBERS else ""
    head: list[Span] = [
        ("  ▌ " if shown in group.repeats else "    ", "bold accent"),
        (f"{len(group.repeats):>3}×  ", ""),
        *outcomes,
        (pad("", 3 - len(outcomes)), ""),
    ]
    many = plural(len(group.repeats), "repeat")
    page.text(
        [(cut(in_words(group.calls), _LONGEST_CALLS), ""), (f"  {many} {numbers}{more}", "muted")], head
    )


# What else came of it


def _write_state(page: Page, shown: CaseShown, result: CaseResult) -> None:
    """The keys of the final state that the case asks for; only what differs, unless it is opened."""
    expected = (shown.case.final_session_state if shown.case else None) or {}
    scored = any(metric.name == "final_session_state" for metric in result.metrics)
    if not result.state and not (expected and scored):
        return
    names = {format_path((key,)): key for key in expected}
    differing = {outermost(diff.path, names) or diff.path for diff in result.state}
    is_open = shown.folding.is_open("state", usual=bool(result.state))
    page.part(is_open=is_open)
    head: Line = [("▾ " if is_open else "▸ ", "faint"), ("Final state ", "bold")]
    head.append(glyph(Status.FAILED if result.state else Status.PASSED))
    for path, key in names.items() if not is_open else ():
        head += [("  ", ""), (visible(path), "key"), (" ", ""), (show_value(expected[key]), JSON)]
    right = (
        f"{show_number(len(expected) - len(differing))}/{counted(len(expected), 'key')}" if expected else ""
    )
    page.fold("state", head, [(right, "muted")] if right else [])
    if not is_open:
        return
    for diff in result.state:
        _write_state_difference(page, diff)
    for path, key in names.items():
        if path not in differing:
            line: Line = [(visible(path), "key"), ("  ", ""), (show_value(expected[key], _MAX_VALUE), JSON)]
            write_row(page, Row("same", line, line))


def _write_state_difference(page: Page, diff: StateDiff) -> None:
    path, kinds = visible(diff.path), type_names(diff.expected, diff.actual)
    note = f"{kinds[1]}, expected {kinds[0]}" if kinds else ""
    notes = (f"expected {kinds[0]}", f"actual {kinds[1]}") if kinds else ("expected", "actual")
    sides = show_change(diff.expected, diff.actual, _MAX_VALUE)
    before, after = ([(path, "key"), ("  ", ""), (side, JSON)] for side in sides)
    at = DifferenceAt("state", path=diff.path)
    values = {"expected": diff.expected, "actual": diff.actual}
    with page.difference(at, f"final state · {path}", values):
        write_row(page, Row("changed", before, after, note, notes, differs=True))


def _write_informational(page: Page, result: CaseResult, folding: Folding) -> None:
    """The metrics without a verdict: a line, and when it is opened one for each of them."""
    metrics = [one for one in result.metrics if one.status is Status.INFORMATIONAL and one.score is not None]
    if not metrics:
        return
    is_open = folding.is_open("informational", usual=False)
    page.part(is_open=is_open)
    head: Line = [("▾ " if is_open else "▸ ", "faint"), ("Informational metrics", "bold")]
    right: Line = []
    for metric in metrics if not is_open else ():
        name, figure = _TOTALS.get(metric.name, visible(metric.name)), _figure(metric)
        if metric.name == _SECONDS:
            right = [(figure, "muted")]
        else:
            head += [(f"   {name} ", "muted"), (figure, "")]
    page.fold("informational", head, right)
    if not is_open:
        return
    for metric in metrics:
        details = "   ".join(
            f"{visible(name.replace('_', ' '))} {show_number(value)}"
            for name, value in metric.details.items()
            if value is not None
        )
        page.hanging(
            [("    ", ""), (visible(metric.name), "key"), (f"  {_figure(metric)}", "")]
            + ([(f"   per turn: {details}", "muted")] if details else []),
            8,
        )


def _figure(metric: MetricResult) -> str:
    """The sum over the turns of what can be added, else the score."""
    turns = [one.score for one in metric.per_invocation if one.score is not None]
    if metric.name not in _TOTALS or not turns or over_conversation(metric.name):
        return show_number(metric.score)
    total = sum(turns)
    if metric.name == _SECONDS:
        return show_duration(total)
    return show_number(total)


def _write_printed(page: Page, shown: CaseShown) -> None:
    printed = shown.printed
    if not printed:
        return
    is_open = shown.folding.is_open("console", usual=False)
    first = visible(printed[0].text)
    page.part(is_open=is_open)
    head: Line = [("▾ " if is_open else "▸ ", "faint"), ("Console", "bold")]
    head += [] if is_open else [(f"   {first}", "muted")]
    page.fold("console", head, [(counted(len(printed), "line"), "muted")])
    for line in printed[:_MOST_PRINTED] if is_open else ():
        page.block([(visible(line.text), "error" if line.source == "stderr" else "")], 4)
    if is_open and len(printed) > _MOST_PRINTED:
        more = counted(len(printed) - _MOST_PRINTED, "more line")
        page.row((f"    and {more}   {key_of('show_console')} Console", "muted"))


def _write_errors(page: Page, result: CaseResult) -> None:
    """Those of metrics; what several have in common, such as a judge that does not answer, once."""
    by_error: dict[ErrorInfo, list[MetricResult]] = {}
    for metric in result.metrics:
        if metric.error and metric.error != result.error:
            by_error.setdefault(metric.error, []).append(metric)
    for error, metrics in by_error.items():
        page.blank()
        what = "raised" if metrics[0].judge is None else "not judged"
        page.text([(f"{', '.join(visible(metric.name) for metric in metrics)} {what}", "bold")])
        write_error(page, error)
