"""What a case did in two runs, and the page about two compared runs."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from evaltui.core.compare.run_comparison import compare
from evaltui.core.compare.run_summary import RunSummary, selected_cases, summarize
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.eval_set import Invocation
from evaltui.core.model.outcome import CaseResult, ErrorInfo, RepeatResult, Status
from evaltui.runs.history import StoredRun
from evaltui.text.lines import draw
from evaltui.tui.compare.page import (
    Columns,
    change_line,
    spent_line,
    write_group,
    write_trajectories,
)
from evaltui.tui.widgets.writer import Page
from evaltui.workbench.messages import Messages, RunsRead
from evaltui.workbench.runs.compared_runs import ComparedRuns, Reasons, trajectories

P, F = Status.PASSED, Status.FAILED
PATH = "home.evalset.json"


def invocation(user, response, *calls):
    tools = [{"name": name, "args": args} for name, args in calls]
    return Invocation.model_validate(
        {
            "user_content": {"parts": [{"text": user}]},
            "final_response": {"parts": [{"text": response}]},
            "intermediate_data": {"tool_uses": tools},
        }
    )


def case(eval_id, status, *turns, **fields):
    repeat = RepeatResult(status, actual=turns, seconds=2.0, **fields)
    return CaseResult(eval_id, status, eval_set_id="home", path=PATH, repeats=(repeat,))


def kept(name, *cases, by_label=False, unfinished=()):
    by_id = {CaseId("home" if by_label else one.path, one.eval_id): one for one in cases}
    selected = [(CaseId(PATH, one), "home") for one in unfinished]
    summary = RunSummary(
        name,
        selected_cases(selected, {key: summarize(one) for key, one in by_id.items()}),
        whole=frozenset({PATH}),
        by_label=by_label,
    )
    return StoredRun(
        Path(name), datetime(2026, 1, 1, tzinfo=UTC), F, 1.0, summary, by_id.__getitem__, lambda _: {}, None
    )


def compared(base, candidate):
    return ComparedRuns(base, candidate, compare(base.summary, candidate.summary))


HELLO = invocation("hi", "Hello.")
OFF = ("set_light", {"room": "Bedroom", "status": "OFF"})
ON = ("set_light", {"room": "Bedroom", "status": "ON"})
BEFORE = invocation("good night", "All lights are off.", OFF)
AFTER = invocation("good night", "All lights are on.", ON, ("notify", {}))
BOTH = compared(
    kept("15", case("night", P, HELLO, BEFORE, final_state={"light": "OFF"}), case("same", P, HELLO)),
    kept("18", case("night", F, HELLO, AFTER, final_state={"light": "ON", "new": 1}), case("same", P, HELLO)),
)


def change_of(both, eval_id):
    return next(change for change in both.comparison.cases if change.case.eval_id == eval_id)


def page_of(both, eval_id, width, height=40, toggled=()):
    page = Page(width, 200)
    change = change_of(both, eval_id)
    write_trajectories(page, trajectories(both, change), ("run 15", "run 18"), height, toggled)
    return [draw(line, color=False) for line in page.lines]


def test_both_trajectories_are_aligned_turn_by_turn():
    found = trajectories(BOTH, change_of(BOTH, "night"))
    assert [turn.is_equal for turn in found.turns] == [True, False]
    assert [diff.op for diff in found.turns[1].result.calls] == ["changed", "extra"]
    assert (found.problems, found.turns[0].user) == (("", ""), "hi")
    assert found.state == (("light", '"OFF"', '"ON"'), ("new", "null", "1"))


def test_equal_turns_are_folded_where_not_everything_fits_and_opened_by_a_click():
    shown = page_of(BOTH, "night", 120, height=5)
    assert [line[:8] for line in shown if "Turn" in line] == ["▸ Turn 1", "▾ Turn 2"]
    shown = page_of(BOTH, "night", 120, height=5, toggled={"turn 0", "turn 1"})
    assert [line[:8] for line in shown if "Turn" in line] == ["▾ Turn 1", "▸ Turn 2"]
    assert page_of(BOTH, "same", 120)[-1] == "= Both runs made the same calls and gave the same responses"


def test_unknown_calls_are_not_none():
    silent = HELLO.model_copy(update={"intermediate_data": None})
    runs = [kept(name, case("night", P, silent)) for name in ("15", "18")]
    assert page_of(compared(*runs), "night", 120)[-1].endswith("the same responses, as far as known")
    heads = [line for line in page_of(compared(*runs), "night", 120, height=2) if "Turn 1" in line]
    assert heads[0].endswith("calls unknown")


def test_responses_with_other_files_are_not_the_same():
    def picture(*files):
        made = invocation("hi", "Hello.").model_dump()
        blobs = [{"inline_data": {"mime_type": "image/png", "data": data}} for data in files]
        made["final_response"]["parts"] = [{"text": "Hello."}, *blobs]
        return Invocation.model_validate(made)

    for other in ((), (b"other",), (b"data", b"more")):
        both = compared(
            kept("15", case("night", P, picture(b"data"))), kept("18", case("night", P, picture(*other)))
        )
        page = "\n".join(page_of(both, "night", 120))
        assert "the same responses" not in page
        assert "[image/png " in page
    both = compared(
        kept("15", case("night", P, picture(b"data"))), kept("18", case("night", P, picture(b"data")))
    )
    assert "the same responses" in page_of(both, "night", 120)[-1]


def test_of_repeated_cases_it_is_said_which_repeats_are_compared():
    repeats = tuple(RepeatResult(status, actual=(HELLO,)) for status in (P, F, P))
    repeated = CaseResult("same", Status.FLAKY, eval_set_id="home", path=PATH, repeats=repeats)
    both = compared(kept("15", case("same", P, HELLO)), kept("18", repeated))
    shown = page_of(both, "same", 120)
    assert "run 18, repeat 2 of 3" in "\n".join(shown)
    assert shown[-1] == "= These repeats made the same calls and gave the same responses"


def test_a_side_without_a_trajectory_says_why():
    error = ErrorInfo("TimeoutError", "no response within 30 s", "", kind=None)
    both = compared(
        kept("15", case("night", P, BEFORE), case("broken", P, HELLO)),
        kept("18", case("broken", Status.ERROR, error=error), unfinished=["night"]),
    )
    assert trajectories(both, change_of(both, "night")).problems == ("", "no result")
    assert page_of(both, "broken", 120)[0] == "run 18: no response within 30 s"
    assert "candidate: 1 case without a result" in draw(spent_line(both), color=False)
    night = change_line(change_of(both, "night"), "night", "", Columns(8), 60)
    assert "✓ → ○" in draw(night, color=False)


def test_a_run_that_knows_set_ids_only_is_compared():
    both = compared(kept("adk", case("night", P, BEFORE), by_label=True), kept("18", case("night", F, AFTER)))
    assert change_of(both, "night").kind == "broken"
    assert trajectories(both, change_of(both, "night")).problems == ("", "")


async def test_each_run_of_a_case_whose_file_is_unknown_has_its_own_reason(until):
    """Results of google-adk beside those of two sets with the same id, of which one is no file."""

    def failed(message):
        error = ErrorInfo("Error", message, "", kind=None)
        return replace(case("night", Status.ERROR, error=error), path="", error=error)

    def cases(*results):
        by_id = {result.id: result for result in results}
        summaries = {key: summarize(result) for key, result in by_id.items()}
        return {"cases": summaries}, by_id.__getitem__

    runs = []
    for run, results in (
        (kept("adk", by_label=True), [failed("too late")]),
        (kept("18"), [failed("too early"), case("night", P, HELLO)]),
    ):
        summaries, read = cases(*results)
        runs.append(replace(run, summary=replace(run.summary, **summaries), case=read))
    both = compared(*runs)
    reasons = Reasons(both, Messages())
    changes = [change for change in both.comparison.cases if change.reasons]
    assert [reasons.of(change) for change in changes] == [None, None]
    await until(lambda: all(reasons.of(change) is not None for change in changes))
    assert [reasons.of(change) for change in changes] == ["Error: too early", "was: Error: too late"]
    await reasons.close()


def text(line):
    return draw(line, color=False)


def test_a_group_has_a_page():
    write_group(page := Page(60), BOTH, "broken")
    assert [text(line) for line in page.lines][:2] == ["1 case   passed in the base", "now  ✗ 1"]


@pytest.mark.parametrize("fails", [True, False])
async def test_why_is_read_when_it_is_looked_at(fails, until):
    both = BOTH if fails else compared(BOTH.candidate, BOTH.base)
    seen = []
    messages = Messages()
    messages.subscribe(seen.append, RunsRead)
    reasons = Reasons(both, messages)
    change = change_of(both, "night")
    assert reasons.of(change_of(both, "same")) == ""
    assert reasons.of(change) is None
    await until(lambda: seen)
    assert reasons.of(change).startswith("was: ") != fails
    await reasons.close()
