"""What judges found, on the result page: folded, opened, walked through, and in full."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judged_metrics import (
    AGREES,
    ANSWERS,
    DISAGREES,
    INVENTED,
    LEFT_OUT,
    POLITE,
    RATINGS,
    RUBRICS,
    SENTENCES,
    SHORT,
    SPLIT,
    SUPPORTED,
    WHOLE,
    judged,
    judged_metric,
)
from judged_votes import SEVERAL, case_of, config_of
from judged_votes import scored as scored_repeat
from pilots import screen_lines, screen_text, turn, until, write_cases

from evaltui.core.compare.diff import align_calls
from evaltui.core.compare.repeats import case_over_repeats
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.eval_set import EvalCase
from evaltui.core.model.judgement import Evidence, Judgement, Vote
from evaltui.core.model.outcome import (
    Call,
    ErrorInfo,
    InvocationScore,
    RepeatResult,
    Status,
    TurnResult,
    worst_status,
)
from evaltui.core.model.stored_cases import StoredCase
from evaltui.core.model.text_diff import ResponseDiff
from evaltui.text.lines import cells, draw
from evaltui.tui.app import WorkbenchApp
from evaltui.tui.result.case_result import ShownCase, write_all_findings, write_case_result
from evaltui.tui.widgets.writer import Folding, Page, fold_of
from evaltui.views.cause import differences_of, judged_row
from evaltui.views.difference import DifferenceAt
from evaltui.workbench.result.acceptable import refuses_case
from evaltui.workbench.result.stored_results import ResultInMemory
from evaltui.workbench.state import CaseOutcome, RunRef, Selection
from evaltui.workbench.workbench import Workbench

CASE = EvalCase.model_validate(
    {"eval_id": "night", "conversation": [turn("Hello", "Hello."), turn("How warm is it?", "21 °C")]}
)
SIMULATED = EvalCase.model_validate(
    {"eval_id": "night", "conversation_scenario": {"starting_prompt": "Hi", "conversation_plan": "Ask."}}
)
SAME = TurnResult("no calls", (), ResponseDiff("Hello.", "Hello."))
METRICS = (
    judged_metric(RUBRICS, [SHORT], [POLITE, SHORT]),
    judged_metric(ANSWERS, [AGREES], [AGREES]),
    judged_metric(WHOLE, [], [judged("", "", 0, 2, against="It is cold.")]),
)


def result_of(*metrics, turns=(SAME, SAME), **fields):
    repeat = RepeatResult(worst_status(one.status for one in metrics), metrics, turns=turns, **fields)
    return case_over_repeats("home", "night", [repeat], "all")


def scored(*metrics, case=CASE, **fields):
    return CaseOutcome(
        ResultInMemory.of(result_of(*metrics, **fields)), RunRef(1), StoredCase.of(case), EvalConfig.default()
    )


def page_of(*metrics, width=78, unfolded=False, in_full=(), **fields):
    page = Page(width, unfolded=in_full)
    write_case_result(page, ShownCase(scored(*metrics, **fields), folding=Folding(unfolded)))
    return page


def drawn(page):
    return [draw(line, color=False) for line in page.lines]


def ends(left, right, width=77):
    return left + right.rjust(width - len(left))


def part_of(lines, name):
    """The lines of a part that folds."""
    first = next(place for place, line in enumerate(lines) if line[2:].startswith(name))
    return lines[first : next((n for n in range(first, len(lines)) if not lines[n]), len(lines))]


RATED = judged_metric(RATINGS, [], [Judgement("", "the answer", 5.0)], threshold=4.0)
OF_USER = judged_metric("per_turn_user_simulator_quality_v1", [judged("", "Hello", 5, 0)])
PARTS = {
    "rubric_quality ✗ 0.50 < 0.80": (judged_metric(RUBRICS, [SHORT], [POLITE], lost=1), []),
    # Votes against open what passed.
    "rubric_quality ✓": (
        judged_metric(RUBRICS, [SHORT], [SPLIT]),
        [
            "    ✓ yes 3/5  kind  Is kind",
            "               It greets.",
            "               ✗ no  It does not greet.",
        ],
    ),
    "final_response_match": (
        judged_metric(ANSWERS, [AGREES], [DISAGREES]),
        ["  Turn 2  votes 1/5", "    ✗ invalid  19 is not 21.", "    ✓ valid    Both are cold."],
    ),
    "hallucinations": (
        judged_metric(SENTENCES, [SUPPORTED], [SUPPORTED, INVENTED]),
        [
            "    ✓ supported      The kitchen is heated.",
            "    ✗ contradictory  It is 30 °C there.",
            "                     The thermostat says 19.",
            '                     contradicting  {"degrees": 19}',
        ],
    ),
    "multi_turn_task_success ✗ 0.00 < 0.80": (METRICS[2], ["  votes 0 0", "    ✗ 0  It is cold."]),
    "response_evaluation": (
        replace(
            RATED,
            per_invocation=(
                InvocationScore(1.0, Status.FAILED, "no response text"),
                RATED.per_invocation[1],
            ),
        ),
        ["  Turn 1", "    no response text"],
    ),
    "per_turn_user_simulator_quality": (
        replace(
            OF_USER,
            status=Status.FAILED,
            per_invocation=(
                replace(OF_USER.per_invocation[0], status=Status.FAILED, reason="not the starting prompt"),
            ),
        ),
        ["  votes 5/5", "    not the starting prompt", "    ✓ yes 5/5  Hello"],
    ),
}


@pytest.mark.parametrize("name", PARTS)
def test_a_metric_says_what_its_judge_found(name):
    metric, found = PARTS[name]
    head, *lines = part_of(drawn(page_of(metric, turns=(SAME,) * len(metric.per_invocation))), name)
    assert "\n".join(found) in "\n".join(lines)
    assert found or head.endswith("  judge gemini-2.5-flash, 1 of 2 answered")


def test_what_passed_is_folded_and_what_failed_is_open():
    lines = drawn(page_of(*METRICS))
    assert part_of(lines, "rubric_quality")[1:] == [
        "  Turn 1  1 of 1 yes",
        "    ✓ yes 5/5  short  Is at most two sentences",
        "  Turn 2  1 of 2 yes",
        "    ✗ no 1/5   polite  Says please and thank you",
        "               It shouts\\x1b[2J at the user.",
        "               ✓ yes  It is so.",
        "    ✓ yes 5/5  short  Is at most two sentences",
    ]
    (folded,) = part_of(lines, "final_response_match")
    assert folded.startswith("▸ final_response_match ✓ 1.00")


def test_unfolded_shows_what_passed():
    lines = drawn(page_of(*METRICS, unfolded=True))
    (_, first, answer, *_) = part_of(lines, "final_response_match")
    assert (first, answer) == ("  Turn 1  votes 5/5", "    ✓ valid  It is so.")


def test_where_all_of_the_page_fits_what_passed_is_open():
    (metric,) = METRICS[1:2]
    page = Page(78)
    write_case_result(page, ShownCase(scored(metric), height=40))
    assert len(part_of(drawn(page), "final_response_match")) == 5
    assert len(page.lines) < 40


def test_the_whole_conversation_says_nothing_of_single_turns():
    lines = drawn(page_of(judged_metric(WHOLE, [], [judged("", "", 0, 2)])))
    assert [line.split("  ")[0] for line in lines if line[2:].startswith("Turn")] == [
        "▸ Turn 1 ·",
        "▸ Turn 2 ·",
    ]


def test_an_error_of_the_judge():
    error = ErrorInfo("ClientError", "401 UNAUTHENTICATED", kind=None)
    failed = replace(judged_metric(RUBRICS, [LEFT_OUT]), status=Status.ERROR, error=error)
    lines = drawn(page_of(failed, turns=(SAME,)))
    assert "rubric_based_final_response_quality_v1 not judged" in lines
    assert "    – not judged  on_topic  Stays with the thermostat" in lines


def test_a_judge_that_does_not_answer_is_told_once():
    error = ErrorInfo("ClientError", "401 UNAUTHENTICATED", "ClientError: 401 UNAUTHENTICATED", kind=None)
    failed = [
        replace(judged_metric(name, [LEFT_OUT]), status=Status.ERROR, error=error)
        for name in (RUBRICS, ANSWERS)
    ]
    lines = drawn(page_of(*failed, turns=(SAME,), width=100))
    place = lines.index("rubric_based_final_response_quality_v1, final_response_match_v2 not judged")
    assert lines[place + 1 :] == ["  ClientError: 401 UNAUTHENTICATED"]


def test_a_simulated_conversation_is_shown_as_one():
    calls = align_calls([], [Call("find_bag", {"id": 7})])
    said = TurnResult("simulated", calls, ResponseDiff(None, "It is in Rome."), user="Where is my bag?")
    page = page_of(
        judged_metric(RUBRICS, [SHORT]),
        turns=(said,),
        case=SIMULATED,
        stopped="stopped at the limit of 1 turn",
        unfolded=True,
    )
    lines = drawn(page)
    assert part_of(lines, "Turn 1") == [
        ends("▾ Turn 1 ✓  Where is my bag?", "simulated user"),
        "  → find_bag  id 7",
        "    It is in Rome.",
    ]
    assert "stopped at the limit of 1 turn" in lines
    wide = drawn(
        page_of(judged_metric(RUBRICS, [SHORT]), turns=(said,), case=SIMULATED, unfolded=True, width=110)
    )
    assert "    It is in Rome." in wide
    assert page.differences == []


def test_every_sample_in_full():
    metric = judged_metric(RUBRICS, [SHORT], [POLITE], lost=1)
    at = page_of(metric).differences[0].at
    page = page_of(metric, in_full={fold_of(at)})
    (difference,) = page.differences
    lines = drawn(page)[difference.first : difference.last]
    assert lines[lines.index("✗ no  polite  4 of 5 votes") :] == [
        "✗ no  polite  4 of 5 votes",
        "  Says please and thank you",
        "    1  ✓ yes  It is so.",
        *[f"    {number}  ✗ no   It shouts\\x1b[2J at the user." for number in range(2, 6)],
    ]


texts = st.text(st.characters(codec="utf-8"), max_size=40) | st.sampled_from(
    ["[/x]", "x" * 200, "日本語" * 30, "a\n\tb\x1b[2J", "\u202e"]
)
numbers = st.sampled_from([None, 0.0, 1.0, 3.5])
votes = st.builds(Vote, numbers, texts, texts, texts)
judgements = st.builds(
    Judgement,
    texts,
    texts,
    numbers,
    texts,
    st.lists(st.builds(Evidence, texts, texts), max_size=2).map(tuple),
    st.lists(votes, max_size=3).map(tuple),
)


@given(
    st.sampled_from([RUBRICS, ANSWERS, SENTENCES, RATINGS, WHOLE, "per_turn_user_simulator_quality_v1"]),
    st.lists(judgements, max_size=3),
    st.integers(10, 130),
)
def test_what_a_judge_says_fits_its_width_and_obeys_nothing(name, found, width):
    metric = judged_metric(name, [], found)
    page = page_of(metric, width=width)
    full = Page(width)
    write_all_findings(full, metric)
    for lines in (page.lines, full.lines):
        assert all(cells(line) <= page.width for line in lines)
        shown = "".join(text for line in lines for text, _ in line)
        assert not {letter for letter in shown if letter < " " or letter in "\x7f\u202e"}
    assert [one.at for one in page.differences] == list(differences_of(result_of(metric)))


# On the screen


@pytest.mark.parametrize(
    ("name", "rubric_id", "row"),
    [
        (RUBRICS, "polite", ("rubric", 0)),
        (RUBRICS, "short", ("turn", 1, "rubric", 0)),
        (RUBRICS, "of the criterion", ("turn", 1)),
        (ANSWERS, "", ("turn", 1, "answer", 0)),
        (SENTENCES, "", ("turn", 1)),
    ],
)
def test_a_finding_leads_to_what_it_was_judged_by(name, rubric_id, row):
    def rubric(id):
        return {"rubric_id": id, "rubric_content": {"text_property": "…"}}

    turns = [turn("Hello", "Hello."), {**turn("How warm is it?", "21 °C"), "rubrics": [rubric("short")]}]
    case = EvalCase.model_validate({"eval_id": "night", "rubrics": [rubric("polite")], "conversation": turns})
    result = result_of(judged_metric(name, [], [judged(rubric_id, "…", 0, 1)]))
    (at,) = differences_of(result)
    assert judged_row(result, case, at) == row


@pytest.fixture
def folder(write_agent):
    found = write_agent("def root_agent(message, session):\n    return 'Hello.'\n", name="house")
    write_cases(found, "home", {"night": [turn("Hello", "Hello."), turn("How warm is it?", "21 °C")]})
    return found


async def opened(app, pilot, *metrics):
    """The result page of a case that came out like this."""
    await until(pilot, lambda: bool(app.workbench.sets.workspace and app.workbench.sets.listed))
    (entry,) = app.workbench.sets.listed
    await until(pilot, lambda: app.workbench.sets.opened(entry.path) is not None)
    key = CaseId(entry.case_path, "night")
    app.workbench.outcomes.results.put(key, scored(*metrics))
    app.workbench.navigation.select(Selection(entry.case_path, "night"))
    await pilot.press("3")
    await pilot.pause()
    return key


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_differences_lead_to_what_failed_and_enter_shows_every_answer(folder, size):
    app = WorkbenchApp(Workbench(folder))
    async with app.run_test(size=size) as pilot:
        key = await opened(app, pilot, *METRICS)
        await pilot.press("n")
        assert app.workbench.navigation.difference == DifferenceAt("judgement", 1, finding=(RUBRICS, 0))
        await pilot.press("enter")
        await until(pilot, lambda: "✗ no  polite  4 of 5 votes" in screen_text(app))
        await pilot.press("enter")
        await until(pilot, lambda: "✗ no  polite  4 of 5 votes" not in screen_text(app))
        await pilot.press("n")
        assert app.workbench.navigation.difference == DifferenceAt("judgement", 1, finding=(WHOLE, 0))
        assert refuses_case(app.workbench.editing, key) == "No difference in calls, response or state"


async def test_enter_shows_what_was_judged_where_nothing_differs(folder):
    app = WorkbenchApp(Workbench(folder))
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(app, pilot, METRICS[1])
        await pilot.press("enter")
        await until(pilot, lambda: "5 of 5 votes" in screen_text(app))


async def test_keys_and_clicks_go_to_a_metric_and_open_it(folder):
    app = WorkbenchApp(Workbench(folder))
    async with app.run_test(size=(160, 45)) as pilot:
        await opened(app, pilot, *METRICS)
        await pilot.press("n", "right", "enter")
        assert app.workbench.navigation.difference is None
        await until(pilot, lambda: "Rate of rubrics that the responses fulfil." in screen_text(app))
        await pilot.press("enter")
        await until(pilot, lambda: "Rate of rubrics" not in screen_text(app))
        await pilot.press("right")
        lines = screen_lines(app)
        row = next(number for number, line in enumerate(lines) if "▌✓ final_response_match" in line)
        await pilot.click(offset=(lines[row].index("multi_turn"), row))
        await pilot.press("enter")
        await until(pilot, lambda: "multi_turn_task_success_v1 ──" in screen_text(app))
        await pilot.press("left", "n")
        assert app.workbench.navigation.difference is not None
        assert "▌✓ final_response_match" not in screen_text(app)


async def test_space_opens_what_passed(folder):
    app = WorkbenchApp(Workbench(folder))
    async with app.run_test(size=(80, 45)) as pilot:
        await opened(app, pilot, METRICS[1])
        assert "▾ final_response_match ✓" in screen_text(app)
        await pilot.resize_terminal(80, 16)
        await until(pilot, lambda: "✓ valid  It is so." not in screen_text(app))
        await pilot.press("space", "G")
        await until(pilot, lambda: "✓ valid  It is so." in screen_text(app))


@given(SEVERAL)
def test_the_page_marks_a_metric_by_what_its_votes_decide(metrics):
    config = config_of(metrics)
    result = case_over_repeats("s", "a", [scored_repeat(metrics, config)], "all")
    page, case = Page(100), StoredCase.of(case_of(metrics))
    outcome = CaseOutcome(ResultInMemory.of(result), RunRef(1), case, config)
    write_case_result(page, ShownCase(outcome, folding=Folding(all_open=True)))
    heads = "\n".join(drawn(page))
    marks = {"PASSED": "✓", "FAILED": "✗", "ERROR": "!", "NOT_EVALUATED": "–"}
    expected = [marks[metric.status] for metric in metrics if metric.status in marks]
    shown = re.findall(r"^▾ (?!Turn|answer_rules)\S+(?: \S+)? ([✓✗!–])", heads, re.MULTILINE)
    assert sorted(shown) == sorted(expected)
