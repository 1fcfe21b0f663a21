"""The result of a case: the verdict, the metrics, every turn beside its expectations, and further details."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property

from evaltui.core.compare.explain import error_text
from evaltui.core.compare.judged import (
    Finding,
    findings,
    was_judged,
)
from evaltui.core.compare.turn_verdicts import turn_status
from evaltui.core.metrics.registry import METRICS, info_of
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.eval_set import EvalCase, user_text
from evaltui.core.model.judgement import Vote
from evaltui.core.model.outcome import CaseResult, MetricResult, Status
from evaltui.core.model.problems import format_path
from evaltui.project.agent_source import SourcePlace
from evaltui.runs.history import CaseHistory
from evaltui.text.figures import counted, score_figures, show_number, show_scores
from evaltui.text.keys import key_of
from evaltui.text.lines import Line, Span, cells, fill_line, pad, wrap
from evaltui.text.outcomes import GLYPHS, ROLES, WORDS, glyph
from evaltui.text.plots import bar
from evaltui.text.syntax import JSON
from evaltui.text.values import show_value, visible, visible_block
from evaltui.tui.result.rows import MIN_WIDTH_BESIDE, write_calls, write_heads, write_text, write_value
from evaltui.tui.result.verdict import ROOMY_WIDTH, short_names, write_history, write_strip, write_verdict
from evaltui.tui.start.page import write_source
from evaltui.tui.widgets.writer import (
    DEFAULT_FOLDING,
    LABEL_WIDTH,
    Folding,
    Lines,
    Page,
    RepeatAt,
    fold_mark,
    fold_of,
    write_error,
    write_json,
)
from evaltui.views.cause import place_of
from evaltui.views.judged import answers_text, cut_block, judge_findings, judge_line, judge_name, mark
from evaltui.views.repeats import repeat_rows, repeat_title
from evaltui.views.result import (
    detailed_turns,
    error_rows,
    gating_metrics,
    informational_rows,
    metric_reason,
    turn_facts,
)
from evaltui.views.rows import Row, cut_middle, outermost_name, scored_response, state_rows, text_rows
from evaltui.workbench.agent.agent_state import PrintedLine
from evaltui.workbench.state import CaseOutcome

_MATCH_TYPES = ("EXACT", "IN_ORDER", "ANY_ORDER")
# What their failures come from stands in the turns, or in the final state.
_METRICS_ELSEWHERE = ("tool_trajectory_avg_score", "response_match_score")


def write_metrics(page: Page, result: CaseResult, folding: Folding, *, opens_passed: bool) -> None:
    """Writes a part for each judged metric, and for each metric with a reason for not passing.

    `opens_passed` opens the parts of passed metrics, too.
    """
    metrics = gating_metrics(result)
    for metric, name in zip(
        metrics, short_names([metric.name for metric in metrics], shortest=False), strict=True
    ):
        if was_judged(metric) or metric.judge is not None:
            _write_judged(page, metric, name, folding, opens_passed=opens_passed)
        elif metric.name == "final_session_state" and not metric.error:
            continue
        elif _says_more(metric):
            _write_plain(page, metric, name, folding)


def _says_more(metric: MetricResult) -> bool:
    """Whether a metric without a judge has more to show than its card and the turns."""
    if metric.name not in _METRICS_ELSEWHERE:
        return bool(metric.error or metric.reason)
    if metric.status is Status.FAILED:
        # Another way to compare calls would pass.
        return any(role == "success" for _, role in match_outcomes(metric))
    return metric.status is not Status.PASSED


def _head(page: Page, metric: MetricResult, name: str, key: str, *, is_open: bool, right: Line) -> None:
    needs = None if metric.status is Status.PASSED else metric.threshold
    figure = show_scores(metric.score, needs, metric.lower_is_better)
    left: Line = [
        fold_mark(is_open),
        (f"{name} ", "bold"),
        glyph(metric.status),
        (f" {figure}", ROLES[metric.status] if metric.score is not None else "muted"),
    ]
    right = right if cells(left) + cells(right) + 2 <= page.width else []
    full: Line = [(f"  {visible(metric.name)}", "faint")] if visible(metric.name) != name else []
    if cells(left) + cells(full) + cells(right) + 2 <= page.width:
        left += full
    page.fold(key, left, right)


def _write_judged(
    page: Page, metric: MetricResult, name: str, folding: Folding, *, opens_passed: bool
) -> None:
    key = f"metric {metric.name}"
    judged_turns = [turn for turn in metric.per_invocation if turn.judgements or turn.reason]
    attention = any(finding.needs_attention for finding in findings(metric)) or any(
        status is not Status.PASSED
        for status in (metric.status, *(judged_turn.status for judged_turn in judged_turns))
    )
    is_open = page.open_part(folding, key, usual=attention or opens_passed)
    _head(page, metric, name, key, is_open=is_open, right=_judge(page, metric))
    if not is_open:
        return
    whole = info_of(metric.name).whole_conversation
    for number, scored in enumerate(metric.per_invocation):
        if not scored.judgements and not scored.reason:
            continue
        turn = judge_findings(metric, number, every_vote=False)
        name = f"Turn {number + 1}" if len(metric.per_invocation) > 1 and not whole else ""
        if heading := "  ".join(filter(None, (name, turn.count))):
            page.row((f"  {heading}", "muted"))
        if scored.reason and not turn.needs_attention:
            page.block([(visible(scored.reason), "muted")], 4)
        for finding, rows in zip(turn.findings, turn.rows, strict=True):
            at = place_of(finding)
            with page.difference(at) if finding.needs_attention else nullcontext():
                for head, text in rows:
                    page.text(text, [("    ", ""), *head])
                if fold_of(at) in page.unfolded:
                    _write_samples(page, finding)
    if metric.reason and metric.status not in (Status.PASSED, Status.FAILED):
        page.block([(visible(metric.reason), "muted")], 4)


def _judge(page: Page, metric: MetricResult) -> Line:
    """The judge model, with the number of its answers; a complete number only where there is room."""
    judge = metric.judge
    if judge is None:
        return []
    is_detailed = page.width >= ROOMY_WIDTH or judge.answered < judge.asked or judge.replayed
    return [(f"judge {judge_name(judge)}{f', {answers_text(judge)}' if is_detailed else ''}", "muted")]


def _write_plain(page: Page, metric: MetricResult, name: str, folding: Folding) -> None:
    """Writes why a metric without a judge did not pass, and which match types would."""
    key = f"metric {metric.name}"
    usual = metric.status is not Status.PASSED and metric.name not in _METRICS_ELSEWHERE
    is_open = page.open_part(folding, key, usual=usual)
    _head(page, metric, name, key, is_open=is_open, right=list(match_outcomes(metric)))
    reason = metric_reason(metric)
    if is_open and reason:
        page.block([(reason, "muted")], 4)


def match_outcomes(metric: MetricResult) -> Iterator[tuple[str, str]]:
    """The outcome by each match type, which shows the effect of relaxing."""
    for way in _MATCH_TYPES:
        if (score := metric.details.get(way)) is not None:
            passes = metric.threshold is not None and score >= metric.threshold
            yield from ((f"  {way} ", "muted"), glyph(Status.PASSED if passes else Status.FAILED))


_MAX_SAMPLE = 20_000


def write_all_findings(page: Page, metric: MetricResult) -> None:
    """Writes the findings of a judge for a metric, with every vote, turn by turn."""
    _write_metric(page, metric)
    turn: int | None = None
    for finding in findings(metric):
        page.blank()
        if finding.turn != turn:
            turn = finding.turn
            whole = info_of(metric.name).whole_conversation
            page.row(("Whole conversation" if whole else f"Turn {turn + 1}", "bold"))
        _write_samples(page, finding)


def _write_metric(page: Page, metric: MetricResult) -> None:
    page.row(
        glyph(metric.status),
        (f" {visible(metric.name)}", "bold"),
        (f"  {show_scores(metric.score, metric.threshold, metric.lower_is_better)}", ""),
    )
    if metric.judge is not None:
        prompt = f"prompt {visible(metric.judge.prompt)}"
        page.block([(f"{judge_line(metric.judge)}, {prompt}", "muted")], 2)


def _write_samples(page: Page, finding: Finding) -> None:
    judgement = finding.judgement
    page.text(_subject(finding), [mark(finding, finding.judgement.score), (f" {finding.word}  ", "")])
    if judgement.id and judgement.subject:
        page.block([(cut_block(judgement.subject, _MAX_SAMPLE), "")], 2)
    heads = [_vote_head(finding, number, vote) for number, vote in enumerate(judgement.votes, start=1)]
    width = max(map(cells, heads), default=0)
    for head, vote in zip(heads, judgement.votes, strict=True):
        why = cut_block("\n".join(filter(None, (vote.rationale, vote.problem))), _MAX_SAMPLE)
        page.text(
            [(why or "without a reason", "" if why else "muted")],
            fill_line(head, width + 2),
        )
    if not judgement.votes and judgement.rationale:
        page.block([(cut_block(judgement.rationale, _MAX_SAMPLE), "")], 2)
    for evidence in judgement.evidence:
        page.text([(cut_block(evidence.text, _MAX_SAMPLE), "")], [(f"  {visible(evidence.kind)}  ", "muted")])


def _subject(finding: Finding) -> Line:
    """The judged item, and its votes."""
    judgement = finding.judgement
    subject = visible(judgement.id) if judgement.id else cut_block(judgement.subject, _MAX_SAMPLE)
    line: Line = [(subject, "bold" if judgement.id else "")] if subject else []
    votes = finding.votes_in_words or finding.tally
    gap = "  " if line else ""
    return [*line, (f"{gap}{votes}" if votes else "", "muted")]


def _vote_head(finding: Finding, number: int, vote: Vote) -> Line:
    return [
        (f"  {number:>3}  ", "muted"),
        mark(finding, vote.score),
        (f" {finding.word_of(vote)}", ""),
    ]


_BAR_WIDTH = 24


def card_of(metric: str) -> str:
    """The fold key of a metric's card."""
    return f"card {metric}"


def write_metric(page: Page, metric: MetricResult, config: EvalConfig) -> None:
    """Writes the meaning and needs of a metric, its scores, every vote of its judge, and its criterion."""
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
    """Writes the score of the case and of each turn, and the reasons for losing points."""
    _write_score(page, "score", metric.score, metric)
    for number, turn in enumerate(metric.per_invocation):
        _write_score(page, f"turn {number + 1}", turn.score, metric, turn.status)
        if turn.reason:
            page.block([(visible(turn.reason), "muted")], 14)
    if of_ways := list(match_outcomes(metric)):
        page.labelled("matching", [(of_ways[0][0].lstrip(), of_ways[0][1]), *of_ways[1:]])
    reason = metric_reason(metric)
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
        line += bar(score, _BAR_WIDTH, ROLES[status], metric.threshold)
    if needed:
        line.append((f"  {'≤' if metric.lower_is_better else '≥'} {needed}", "muted"))
    page.labelled(label, line)


def _write_criterion(page: Page, name: str, config: EvalConfig) -> None:
    """Writes the criterion of a metric."""
    metric = next(
        (config_metric for config_metric in config.metrics() if config_metric.metric_name == name), None
    )
    if metric is None or metric.criterion is None:
        page.row(("  Not in the criteria of this run", "muted"))
        return
    if metric.custom_function_path:
        page.labelled("function", [(visible(metric.custom_function_path), "function")])
    if name in config.evaltui.optional:
        page.labelled("optional", [("a case passes without it", "")])
    write_json(page, {name: metric.criterion.model_dump(by_alias=False, exclude_defaults=True)})


_MAX_PRINTED = 200
# Cells of the glyph of a repeat.
_GLYPH_WIDTH = 2
_MAX_MESSAGE_LENGTH = 20_000
# Shown of a message before the others are unfolded.
_MESSAGE_LINES = 2
# Shown of a value of the final state while that is folded, characters.
_MIN_VALUE = 12


@dataclass(frozen=True)
class ShownCase:
    """A result with its display options."""

    scored: CaseOutcome
    past: CaseHistory | None = None
    """The earlier results; None while they are read."""
    folding: Folding = DEFAULT_FOLDING
    height: int = 0
    """Lines of the page; if the whole result fits, passed parts are open, too."""
    turn: int | None = None
    """The selected turn, from 0, which is open."""
    note: Sequence[Span] = ()
    """A note about the whole result."""
    changed: Sequence[str] = ()
    """The changes after its run, as in `Freshness`."""
    place: str = ""
    """The place of the case: `lights.evalset.json:88`."""
    printed: Sequence[PrintedLine] = ()
    """The agent's output in the case."""
    strip_last: bool = False
    """Whether the metrics are below the differences, as on a small screen."""
    same_error: int = 0
    """The number of other cases with the same error."""
    raised_at: SourcePlace | None = None
    """The line of the user's code that raised the error; None where it is unknown, or has changed."""
    messages: Mapping[int, str] | None = None
    """The user messages of the run by turn, from 0, where its case is not stored any more; else None."""

    @cached_property
    def case(self) -> EvalCase | None:
        """The case that scored the result; None where it is not stored any more."""
        return self.scored.case if self.messages is None else None

    def message(self, number: int) -> str:
        """The user message of a turn, from 0; "" where it is unknown."""
        if self.case is None:
            return (self.messages or {}).get(number, "")
        turns = self.case.conversation or []
        return user_text(turns[number].user_content) if number < len(turns) else ""


def write_case_result(page: Page, shown: ShownCase) -> None:
    """Writes the result of a case; passed parts are folded, unless the page fits with them open."""
    opened = Page(page.width, page.widest, page.marks, Lines(page.lines), unfolded=page.unfolded)
    _write(page, shown, opens_passed=False)
    if len(page.lines) <= shown.height:
        _write(opened, shown, opens_passed=True)
        if len(opened.lines) <= shown.height:
            page.add_page(opened)


def _write(page: Page, shown: ShownCase, *, opens_passed: bool) -> None:
    scored = shown.scored
    result = scored.shown
    several = len(scored.result.repeats) > 1
    write_verdict(page, scored.result if several else result, list(shown.note))
    if shown.raised_at is not None:
        write_source(page, shown.raised_at)
    if shown.same_error:
        page.blank()
        also = f"{counted(shown.same_error, 'other case')} ended with the same error"
        page.labelled("also", [(also, "muted")])
    if several:
        page.blank()
        write_repeats(page, scored)
    if not shown.strip_last:
        _write_strip(page, shown, result)
    if result.error:
        page.blank()
        is_told = not several and not error_text(result.error).endswith("…")
        write_error(page, result.error, shown.folding, is_told=is_told)
    _write_turns(page, shown, result, opens_passed=opens_passed)
    if shown.strip_last:
        _write_strip(page, shown, result)
    write_metrics(page, result, shown.folding, opens_passed=opens_passed)
    _write_state(page, shown, result)
    _write_informational(page, result, shown.folding)
    passed = result.status is Status.PASSED
    write_history(page, shown.past, shown.folding, passed=passed, changed=shown.changed)
    _write_printed(page, shown)
    _write_errors(page, result)


def _write_strip(page: Page, shown: ShownCase, result: CaseResult) -> None:
    """Writes the metrics, and the unfolded ones below."""
    write_strip(page, result, shown.past, stale=bool(shown.note))
    for metric in gating_metrics(result):
        if card_of(metric.name) in page.unfolded:
            write_metric(page, metric, shown.scored.config)


def _write_turns(page: Page, shown: ShownCase, result: CaseResult, *, opens_passed: bool) -> None:
    in_detail = detailed_turns(result)
    for number in range(len(result.turns)):
        usual = opens_passed or number in in_detail or number == shown.turn
        is_open = page.open_part(shown.folding, f"turn {number}", usual=usual)
        _write_turn(page, shown, result, number, is_open=is_open)
    if result.stopped:
        page.blank()
        page.text([(visible(result.stopped), "muted")])


def _write_turn(page: Page, shown: ShownCase, result: CaseResult, number: int, *, is_open: bool) -> None:
    turn, status = result.turns[number], turn_status(result, number)
    page.turns[number] = len(page.lines)
    message = turn.user or shown.message(number)
    head: Line = [fold_mark(is_open), (f"Turn {number + 1}", "bold"), (" ", "")]
    head += [glyph(status) if status else (GLYPHS["INFORMATIONAL"], "muted"), ("  ", "")]
    failed = status in ("FAILED", "ERROR")
    head.append((" ".join(visible_block(message).split()), "" if failed else "muted"))
    facts = list(turn_facts(result, number))
    if len(facts) > 2 and cells(head) + len("   ".join(facts)) + 2 > page.width:
        # The score stands beside the response, too.
        facts = [fact for fact in facts if not fact.startswith("response ")]
    page.fold(f"turn {number}", head, [("   ".join(facts), "muted")])
    if not is_open:
        return
    if "\n" in message.strip() or cells(head) + len("   ".join(facts)) + 2 > page.width:
        _write_message(page, shown.folding, f"message {number}", message)
    if failed and turn.expectation != "simulated":
        write_heads(page, ("expected", shown.place), ("actual", shown.scored.run.name))
    write_calls(page, turn, number, shown.folding, is_brief=not failed)
    for row in text_rows(result, number):
        write_text(page, row)
    if page.width >= MIN_WIDTH_BESIDE and failed and (turn.calls or turn.intermediate):
        page.blank()
    if (response := scored_response(result, number)) is not None:
        write_text(page, response)


def _write_message(page: Page, folding: Folding, key: str, message: str) -> None:
    """Writes the user message of a turn; the end of a long one is folded."""
    text = visible_block(cut_middle(message, _MAX_MESSAGE_LENGTH))
    lines: list[Line] = [[("    ", ""), *line] for line in wrap([(text, "muted")], page.width - 4)]
    if len(lines) <= _MESSAGE_LINES + 1:
        page.lines += lines
        return
    is_open = folding.is_open(key, usual=False)
    if is_open:
        page.lines += lines
        page.fold(key, [("    ▾ ", "faint"), ("fewer lines", "muted")])
    else:
        page.lines += lines[:_MESSAGE_LINES]
        more = counted(len(lines) - _MESSAGE_LINES, "more line")
        page.fold(key, [("    ▸ ", "faint"), (more, "muted")])


# Repeats


def write_repeats(page: Page, scored: CaseOutcome) -> None:
    """Writes the outcomes of the repeats, the estimate for the next ones, and their calls."""
    result = scored.result
    _write_outcomes(page, result, scored.repeat, chosen=scored.chosen is not None)
    for row in repeat_rows(result):
        if row.repeats:
            head: Line = [("  ▌ " if scored.repeat in row.repeats else "    ", "bold accent"), *row.head]
            page.text(row.line, head)
        else:
            page.labelled(row.label, row.line)


def _write_outcomes(page: Page, result: CaseResult, shown: int, *, chosen: bool) -> None:
    margin = 2 + LABEL_WIDTH
    in_row = max(1, (page.width - margin) // _GLYPH_WIDTH)
    for first in range(0, len(result.repeats), in_row):
        spans: list[Span] = [(pad("  repeats" if first == 0 else "", margin), "muted")]
        for number in range(first, min(first + in_row, len(result.repeats))):
            mark, role = glyph(result.repeats[number].status)
            start = margin + (number - first) * _GLYPH_WIDTH
            page.repeats.append(RepeatAt(number, len(page.lines), start, start + _GLYPH_WIDTH))
            spans += [(mark, "chip" if number == shown else role), (" ", "")]
        if first + in_row >= len(result.repeats):
            spans.append((f" {result.passed_repeats}/{len(result.repeats)}", f"bold {ROLES[result.status]}"))
        page.row(*spans)
    keys = f"   {key_of('previous_repeat')} {key_of('next_repeat')} previous, next"
    page.labelled("shown", [(repeat_title(result, shown if chosen else None), "bold"), (keys, "muted")])


# What else came of it


def _write_state(page: Page, shown: ShownCase, result: CaseResult) -> None:
    """Writes the expected keys of the final state; only the differing ones, unless it is opened."""
    expected = (shown.case.final_session_state if shown.case else None) or {}
    metric = next((metric for metric in result.metrics if metric.name == "final_session_state"), None)
    if not result.state and (not expected or metric is None):
        return
    unknown = metric.status if metric is not None and metric.score is None else None
    names = {format_path((key,)): key for key in expected}
    differing = {outermost_name(diff.path, names) or diff.path for diff in result.state}
    is_open = page.open_part(shown.folding, "state", usual=bool(result.state))
    head: Line = [fold_mark(is_open), ("Final state ", "bold")]
    head.append(glyph(unknown or (Status.FAILED if result.state else Status.PASSED)))
    right = (
        f"{show_number(len(expected) - len(differing))}/{counted(len(expected), 'key')}" if expected else ""
    )
    right = "unknown" if unknown else right
    for number, (path, key) in enumerate(names.items() if not is_open else ()):
        head += [("  ", ""), (visible(path), "key"), (" ", "")]
        # They share the line.
        room = (page.width - cells(head) - len(right) - 2) // (len(names) - number)
        head.append((show_value(expected[key], max(_MIN_VALUE, room)), JSON))
    page.fold("state", head, [(right, "muted")] if right else [])
    if not is_open:
        return
    for row in state_rows(result.state):
        write_value(page, row)
    for path, key in names.items():
        value = expected[key]
        if unknown:
            write_value(page, Row("state", "", visible(path), value, note="actual unknown"))
        elif path not in differing:
            write_value(page, Row("state", "same", visible(path), value, value))


def _write_informational(page: Page, result: CaseResult, folding: Folding) -> None:
    """Writes the metrics without a verdict: a line, and one per metric when it is opened."""
    rows = informational_rows(result)
    if not rows:
        return
    is_open = page.open_part(folding, "informational", usual=False)
    head: Line = [fold_mark(is_open), ("Informational metrics", "bold")]
    right: Line = []
    for row in rows if not is_open else ():
        if row.is_time:
            right = [(row.figure, "muted")]
        else:
            head += [(f"   {row.name} ", "muted"), (row.figure, "")]
    page.fold("informational", head, right)
    for row in rows if is_open else ():
        details = "   ".join(
            f"{visible(name.replace('_', ' '))} {show_number(value)}"
            for name, value in row.metric.details.items()
            if value is not None
        )
        line: Line = [("    ", ""), (visible(row.metric.name), "key"), (f"  {row.figure}", "")]
        page.hanging([*line, *([(f"   per turn: {details}", "muted")] if details else [])], 8)


def _write_printed(page: Page, shown: ShownCase) -> None:
    printed = shown.printed
    if not printed:
        return
    is_open = page.open_part(shown.folding, "console", usual=False)
    head: Line = [fold_mark(is_open), ("Console", "bold")]
    head += [] if is_open else [(f"   {visible(printed[0].text)}", "muted")]
    page.fold("console", head, [(counted(len(printed), "line"), "muted")])
    for line in printed[:_MAX_PRINTED] if is_open else ():
        page.block([(visible(line.text), "error" if line.source == "stderr" else "")], 4)
    if is_open and len(printed) > _MAX_PRINTED:
        more = counted(len(printed) - _MAX_PRINTED, "more line")
        page.row((f"    and {more}   {key_of('show_console')} Console", "muted"))


def _write_errors(page: Page, result: CaseResult) -> None:
    """Writes the errors of metrics."""
    for row in error_rows(result):
        if row.title:
            page.blank()
            page.text([(row.title, "bold")])
            write_error(page, row.error)
