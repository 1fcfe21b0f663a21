"""The turns of a result: what was said, the calls, and the response, expected and actual."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from evaltui.core.compare.turn_verdicts import INTERMEDIATE_METRIC, response_op, text_differs, turn_status
from evaltui.core.model.outcome import CaseResult, MetricResult, Status, TurnResult
from evaltui.core.model.text_diff import NO_TEXTS, IntermediateDiff
from evaltui.text.figures import counted, score_figures, show_duration, show_score
from evaltui.text.lines import Line, Span, cells, with_role, wrap
from evaltui.text.markdown import markdown
from evaltui.text.outcomes import GLYPHS, glyph
from evaltui.text.syntax import code
from evaltui.text.values import visible, visible_block
from evaltui.text.word_diff import MARKS, WordOp, much_in_common, words
from evaltui.tui.pages.calls import (
    BESIDE,
    GUTTER,
    MARGIN,
    Row,
    TurnCalls,
    column_width,
    write_calls,
    write_made_calls,
    write_row,
)
from evaltui.tui.pages.writer import Folding, Page
from evaltui.workbench.state import DifferenceAt

_RESPONSE_METRIC = "response_match_score"
_SECONDS_METRIC = "invocation_duration_v1"
_LONGEST_TEXT = 20_000


def write_turn(
    page: Page,
    result: CaseResult,
    message: str,
    number: int,
    folding: Folding,
    *,
    usual: bool,
    heads: tuple[str, str],
) -> None:
    """A turn, from 0, with the `message` of the user; `usual` is whether it is open by itself, `heads` where
    the two sides are from."""
    turn, key = result.turns[number], f"turn {number}"
    is_open = folding.is_open(key, usual=usual)
    page.turns[number] = len(page.lines)
    said = turn.user or message
    head: Line = [("▾ " if is_open else "▸ ", "faint"), (f"Turn {number + 1}", "bold"), (" ", "")]
    status = turn_status(result, number)
    head += [glyph(status) if status else (GLYPHS["INFORMATIONAL"], "muted"), ("  ", "")]
    failed = status in ("FAILED", "ERROR")
    head.append((" ".join(visible_block(said).split()), "" if failed else "muted"))
    facts = list(_facts(page, result, number))
    # The score stands beside the response, too.
    if len(facts) > 2 and cells(head) + len("   ".join(facts)) + 2 > page.width:
        del facts[1]
    page.fold(key, head, [("   ".join(facts), "muted")])
    if not is_open:
        return
    if "\n" in said.strip() or cells(head) + len("   ".join(facts)) + 2 > page.width:
        page.block([(_shown(said), "muted")], 4)
    if turn.expectation == "simulated":
        write_made_calls(page, turn)
    else:
        if failed:
            write_heads(page, ("expected", heads[0]), ("actual", heads[1]))
        write_calls(page, TurnCalls(turn, number, folding, is_brief=not failed))
    shown = write_texts_before(page, result, number)
    if page.width >= BESIDE and failed and (turn.calls or shown):
        page.blank()
    write_response(page, turn, number, response_op(result, number), _score(result, number))


def _facts(page: Page, result: CaseResult, number: int) -> Iterator[str]:
    """`2/3 calls`, `response 0.93`, `1.2 s`"""
    turn = result.turns[number]
    same = sum(diff.op == "same" for diff in turn.calls)
    narrow = page.width < BESIDE
    match turn.expectation:
        case "no calls":
            yield "no calls expected" if not turn.calls else f"{same}/{counted(len(turn.calls), 'call')}"
        case "unspecified":
            yield "calls unspecified" if narrow else "calls unspecified (scored as no calls)"
        case "not checked":
            yield "calls not checked"
        case "unknown":
            yield "calls unknown"
        case "context":
            yield "context" if narrow else "context turn, not scored"
        case "simulated":
            yield "simulated user"
        case _:
            yield f"{same}/{counted(len(turn.calls), 'call')}"
    if turn.response.score is not None:
        yield f"response {show_score(turn.response.score)}"
    seconds = _of_turn(result, _SECONDS_METRIC, number)
    if seconds is not None and seconds[0] is not None:
        yield show_duration(seconds[0])


def _of_turn(result: CaseResult, name: str, number: int) -> tuple[float | None, MetricResult] | None:
    """What a metric says of a turn."""
    metric = next((one for one in result.metrics if one.name == name), None)
    if metric is None or len(metric.per_invocation) != len(result.turns):
        return None
    return metric.per_invocation[number].score, metric


def _score(result: CaseResult, number: int) -> str:
    """`0.93 ≥ 0.80`; "" where the response has no score."""
    scored = _of_turn(result, _RESPONSE_METRIC, number)
    if scored is None or scored[0] is None:
        return ""
    figure, needed = score_figures(scored[0], scored[1].threshold)
    passed = scored[1].per_invocation[number].status is Status.PASSED
    return f"{figure} {'≥' if passed else '<'} {needed}" if needed else figure


def write_heads(page: Page, expected: tuple[str, str], actual: tuple[str, str]) -> None:
    """`expected FILE:LINE ─────  │  actual run 18 ─────`, where there are two columns.

    Each side has a name, and a place that it is from."""
    if page.width < BESIDE:
        return
    room = column_width(page)
    left, right = (_head(*one, room) for one in (expected, actual))
    page.lines.append([(" " * MARGIN, ""), *left, ("  │".ljust(GUTTER), "line"), *right])


def _head(side: str, where: str, room: int) -> Line:
    line: Line = [(side, "muted"), (f" {visible(where)} " if where else " ", "faint")]
    return [*line, ("─" * max(0, room - cells(line)), "line")]


# Texts before the response


def write_texts_before(page: Page, result: CaseResult, number: int) -> bool:
    """The intermediate responses of a turn, beside those that are expected; whether any are expected."""
    turn = result.turns[number]
    aligned = {row.actual for row in turn.intermediate}
    for before in turn.unscored:
        if before.author in NO_TEXTS or before.text not in aligned:
            page.text(
                [(f"{visible(before.author)}: {_shown(before.text)}", "muted"), ("  not scored", "faint")],
                [("    ", "")],
            )
    scored = _of_turn(result, INTERMEDIATE_METRIC, number)
    for place, row in enumerate(turn.intermediate):
        note = "" if scored is not None and scored[0] is not None else "not scored"
        if row.score is not None and not note:
            note = "" if row.score == 1.0 else show_score(row.score)
        if not text_differs(result, number, row):
            _write_text(page, row, note, is_failed=False)
            continue
        title = f"turn {number + 1} · intermediate response"
        sides = {"expected": row.expected, "actual": row.actual}
        with page.difference(DifferenceAt("text", number, text=place), title, sides):
            _write_text(page, row, note, is_failed=True)
    return bool(turn.intermediate)


def _write_text(page: Page, row: IntermediateDiff, note: str, *, is_failed: bool) -> None:
    name = f"{row.author}: "
    expected, actual = (text if text is None else f"{name}{text}" for text in (row.expected, row.actual))
    if row.expected == row.actual:
        _write_same(page, actual or "", note, expected=True)
    elif expected and actual:
        write = _write_beside if page.width >= BESIDE else _write_below
        write(page, expected, actual, "changed" if is_failed else "within", note)
    else:
        _write_one_side(page, row, expected or actual or "", note, is_failed=is_failed)


def _write_one_side(page: Page, row: IntermediateDiff, text: str, note: str, *, is_failed: bool) -> None:
    """A text that the other side does not have."""
    is_missing = row.actual is None
    note = note or ("missing" if is_missing else "unexpected")
    room = (column_width(page) if page.width >= BESIDE else page.width - MARGIN - 2) - len(note) - 2
    for number, line in enumerate(prose(text, max(8, room))):
        op = ("missing" if is_missing else "extra") if is_failed and number == 0 else ""
        left, right = (line, None) if is_missing else (None, line)
        write_row(page, Row(op, left, right, note if number == 0 else "", differs=is_failed))


# Responses


def write_response(page: Page, turn: TurnResult, number: int, op: str, score: str) -> None:
    """The expected response and the actual one, word for word where they have much in common.

    `op` is how they differ, `score` what that came to."""
    expected, actual = turn.response.expected, turn.response.actual
    if not expected and not actual:
        return
    if turn.expectation == "simulated":
        # Nothing is expected: there is one column.
        page.lines += [[("    ", ""), *line] for line in prose(actual or "", page.width - 4)]
        return
    if not op:
        note = "no response expected" if not expected else score
        _write_same(page, actual or "", note, expected=expected == actual)
        return
    at = DifferenceAt("answer", number)
    with page.difference(at, f"turn {number + 1} · response", {"expected": expected, "actual": actual}):
        if page.width >= BESIDE:
            _write_beside(page, expected or "", actual or "", op, score, turn.without_response)
        else:
            _write_below(page, expected or "", actual or "", op, score, turn.without_response)


def _write_same(page: Page, text: str, note: str, *, expected: bool) -> None:
    """A response that is as `expected`, or that has no counterpart."""
    room = (column_width(page) if page.width >= BESIDE else page.width - MARGIN - 2) - len(note) - 2
    for number, line in enumerate(prose(text, max(8, room))):
        op, here = ("same" if expected else "", note) if number == 0 else ("", "")
        write_row(page, Row(op, line if expected else None, line, here))


def prose(text: str, room: int) -> list[Line]:
    """The lines of a text in so many cells; several are taken for Markdown."""
    shown = _shown(text)
    return markdown(shown, room) if "\n" in shown.strip() else wrap([(shown, "")], room)


def _write_beside(page: Page, expected: str, actual: str, op: str, score: str, absent: str = "") -> None:
    room = column_width(page) - 1
    room_right = room - cells([(score, "")]) - 2
    parts = words(expected, actual)
    common = much_in_common(parts) and bool(actual)
    if common:
        kept = ([one for one in parts if one[0] != other] for other in ("added", "removed"))
        left, right = (
            wrap(_marked(page, some, "exp-hi"), width)
            for some, width in zip(kept, (room, room_right), strict=True)
        )
    else:
        left, right = prose(expected, room), prose(actual, room_right)
    right = right if actual else [[(absent, "error")]]
    for number, (one, other) in enumerate(zip_longest(left, right)):
        first = number == 0
        note, mark = (score, op) if first else ("", "")
        write_row(page, Row(mark, one, other, note, differs=not common and op == "changed"))


def _write_below(page: Page, expected: str, actual: str, op: str, score: str, absent: str = "") -> None:
    room = page.width - MARGIN - 2
    parts = words(expected, actual)
    if actual and much_in_common(parts):
        for number, line in enumerate(wrap(_marked(page, parts, "exp-hi strike"), room - len(score) - 2)):
            write_row(page, Row(op if number == 0 else "", None, line, score if number == 0 else ""))
        return
    for number, line in enumerate(prose(expected, room - 10)):
        note = "expected" if number == 0 else ""
        write_row(page, Row("missing" if number == 0 else "", line, None, note, differs=True))
    note = score if actual else absent
    for number, line in enumerate(prose(actual, room - len(note) - 2) or [[]]):
        mark = "extra" if number == 0 else ""
        write_row(page, Row(mark, None, line, note if number == 0 else "", differs=True))


def _marked(page: Page, parts: Sequence[tuple[WordOp, str]], removed: str) -> list[Span]:
    """The words of one text, or of both where all parts are given; what changed is tinted, or in marks.

    Several lines have the colours of Markdown."""
    # Marks could not be read with a line through them.
    roles = {"same": "", "removed": "exp-hi" if page.marks else removed, "added": "act-hi"}
    spans: list[Span] = []
    touching = False
    for op, text in parts:
        start, end, _ = MARKS[op] if page.marks else ("", "", "")
        only = text.strip() or text
        before, _, after = text.partition(only)
        # In the texts they touch; for the eye they are two words.
        gap = " " if op == "added" and touching else ""
        touching = op == "removed" and not after
        spans += [
            (f"{gap}{_shown(before)}", ""),
            (f"{start}{_shown(only)}{end}", roles[op]),
            (_shown(after), ""),
        ]
    return _in_markdown(spans)


def _in_markdown(spans: list[Span]) -> list[Span]:
    """A text of several lines with the colours of Markdown under its own roles."""
    text = "".join(part for part, _ in spans)
    if "\n" not in text.strip():
        return spans
    coloured = [span for line in code(text, "markdown") for span in (*line, ("\n", ""))][:-1]
    if "".join(part for part, _ in coloured) != text:
        return spans
    place = 0
    for part, role in spans:
        if role and part:
            coloured = with_role(role, coloured, place, place + len(part))
        place += len(part)
    return coloured


def _shown(text: str) -> str:
    """A text of several lines as the terminal may have it, without its middle where it is very long."""
    if len(text) > _LONGEST_TEXT:
        half = _LONGEST_TEXT // 2
        text = f"{text[:half]}\n… {counted(len(text) - 2 * half, 'more character')} …\n{text[-half:]}"
    return visible_block(text)
