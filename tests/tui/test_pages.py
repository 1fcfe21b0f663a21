"""Pages as text: they fit their width and hold nothing that a terminal would obey."""

import asyncio

from google.genai import types
from hypothesis import given
from hypothesis import strategies as st
from pilots import write_case

from evaltui.core.compare.repeats import case_over_repeats
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.eval_set import EvalCase, IntermediateData, Invocation
from evaltui.core.model.outcome import ErrorInfo
from evaltui.core.model.stored_cases import StoredCase
from evaltui.core.scoring import Expected, failed_repeat, score_case
from evaltui.text.lines import cells
from evaltui.tui.result.case_result import ShownCase, write_case_result
from evaltui.tui.widgets.writer import MIN_WIDTH, Folding, Page
from evaltui.workbench.result.stored_results import ResultInMemory
from evaltui.workbench.state import CaseOutcome, RunRef

texts = st.text(st.characters(codec="utf-8"), max_size=60) | st.sampled_from(
    ["[/x]", "\x1b[2J", "日本語テキスト" * 9, "a\n\tb\r\n", "x" * 200, "🎉 \u202e done"]
)
arguments = st.dictionaries(
    texts, st.none() | st.booleans() | st.integers() | texts | st.lists(texts, max_size=2), max_size=3
)
calls = st.builds(lambda name, args: types.FunctionCall(name=name, args=args), texts, arguments)


def invocation(said, answer, called):
    return Invocation(
        user_content=types.Content(role="user", parts=[types.Part(text=said)]),
        final_response=types.Content(role="model", parts=[types.Part(text=answer)]),
        intermediate_data=IntermediateData(tool_uses=called),
    )


invocations = st.builds(invocation, texts, texts, st.lists(calls, max_size=3))


def check(page):
    assert all(cells(line) <= page.width for line in page.lines)
    shown = "".join(text for line in page.lines for text, _ in line)
    assert not {letter for letter in shown if letter < " " or letter in "\x7f\u202e"}


@given(st.lists(st.tuples(invocations, invocations), min_size=1, max_size=3), st.integers(10, 130))
def test_results_and_expectations_fit_their_width(turns, width):
    case = EvalCase(eval_id="case", conversation=[want for want, _ in turns])
    result = asyncio.run(score_case(case, [did for _, did in turns], EvalConfig.default()))
    page = Page(width)
    scored = CaseOutcome(ResultInMemory.of(result), RunRef(1), StoredCase.of(case), EvalConfig.default())
    write_case_result(page, ShownCase(scored, folding=Folding(all_open=True)))
    check(page)
    assert sorted(page.turns) == list(range(len(turns)))
    page = Page(width)
    write_case(page, case, "set", None)
    check(page)


@given(texts, texts, texts, st.integers(MIN_WIDTH, 130))
def test_errors_fit_their_width(kind, message, traceback, width):
    case = EvalCase(eval_id="case", conversation=[])
    wanted = Expected("set", case, EvalConfig.default())
    repeat = failed_repeat(wanted, ErrorInfo(kind, message, traceback, "agent.py:3", kind=None), [], 0.1)
    result = case_over_repeats("set", "case", [repeat], "all")
    page = Page(width)
    scored = CaseOutcome(ResultInMemory.of(result), RunRef(1), StoredCase.of(case), EvalConfig.default())
    write_case_result(page, ShownCase(scored, folding=Folding(all_open=True)))
    check(page)


def test_what_a_page_cuts_it_keeps_in_full():
    page = Page(40)
    page.row(("short", ""))
    page.row(("a row of ", ""), ("words " * 10, "muted"))
    page.ends([("the left end " * 4, "bold")], [("right", "")])
    page.ends([("left", "")], [("right", "")])
    page.section(("Title", "bold"))
    check(page)
    assert page.full_texts == {1: ("a row of " + "words " * 10).strip(), 2: ("the left end " * 4).strip()}
