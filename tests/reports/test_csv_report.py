import csv
import io
from dataclasses import replace

import pytest
from eval_data import make_case, make_turn
from example_runs import case, failed, mixed, passed, report, unevaluated
from hypothesis import example, given
from hypothesis import strategies as st

from evaltui.core.model.config import EvalConfig
from evaltui.core.model.eval_set import EvalCase, Invocation
from evaltui.core.model.outcome import ErrorInfo, MetricResult, Status
from evaltui.core.scoring import score_case
from evaltui.reports.csv_report import csv_report
from evaltui.runs.run_header import SelectedSet


def rows(run):
    return list(csv.DictReader(io.StringIO("".join(csv_report(run)), newline="")))


def turn(says, answer, *calls):
    return make_turn(says, answer, calls=[{"name": name, "args": args} for name, args in calls])


async def scored(expected, actual, **criteria):
    """A run of one case with two sides that are known."""
    wanted = EvalCase.model_validate(make_case("night", *expected))
    did = [Invocation.model_validate(one) for one in actual]
    result = await score_case(wanted, did, EvalConfig(criteria=criteria), eval_set_id="home")
    home = SelectedSet("home", "home", ())
    return report(result, sets=(home,), expected=lambda _: wanted.conversation)


def test_no_case_is_missing():
    assert {row["eval_id"] for row in rows(mixed())} == {one.eval_id for one in mixed().cases}


def test_a_metric_without_turns_has_one_row():
    judge = MetricResult(
        "judge", None, 0.5, Status.ERROR, error=ErrorInfo("RuntimeError", "judge 500", kind=None)
    )
    run = report(unevaluated(), case("both", Status.ERROR, metrics=(judge,)))
    safety, judged = rows(run)
    assert (safety["turn"], safety["eval_status"], safety["reason"]) == (
        "",
        "NOT_EVALUATED",
        "needs Vertex AI",
    )
    assert (judged["score"], judged["eval_status"], judged["reason"]) == (
        "",
        "ERROR",
        "RuntimeError: judge 500",
    )


def test_where_no_expectation_is_known_there_is_still_what_was_said():
    one = failed()
    repeat = replace(one.repeats[0], turns=one.turns)
    found = rows(report(replace(one, repeats=(repeat,))))
    assert [row["prompt"] for row in found[:2]] == ["hello", "And the kitchen?"]
    assert found[1]["expected_response"] == "The kitchen is now 19 °C."


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\n=1", " =1", "＝1", "=HYPERLINK(1)"]
)
async def test_text_is_never_a_formula(text):
    run = await scored([turn(text, text, (text, {}))], [turn(text, text, (text, {}))], response_match_score=1)
    cells = {name: rows(run)[0][name] for name in ("prompt", "expected_response", "actual_tool_calls")}
    assert all(cell.startswith("'") for cell in cells.values()), cells
    odd = report(replace(passed(text), eval_set_id=text), sets=(SelectedSet(text, text, ()),))
    assert {row["eval_id"][0] for row in rows(odd)} == {"'"}


def test_a_negative_score_stays_a_number():
    metric = MetricResult("mine", -0.5, -1.0, Status.PASSED)
    (row,) = rows(report(case("c", Status.PASSED, metrics=(metric,))))
    assert (row["score"], row["threshold"]) == ("-0.5", "-1.0")


any_text = st.text(st.characters(codec=None), max_size=20)


@given(any_text, any_text)
@example("\ud800\x00", 'a "quoted", text\r\n\x1b[31m')
def test_any_text_makes_rows_that_can_be_read_again(text, other):
    metric = MetricResult(other, 0.0, 1.0, Status.FAILED, reason=text)
    written = "".join(csv_report(report(case(text, Status.FAILED, metrics=(metric,)))))
    (row,) = csv.DictReader(io.StringIO(written.encode("utf-8").decode("utf-8"), newline=""))
    assert None not in row
    assert None not in row.values()
    assert not any(ord(character) < 32 and character != "\n" for character in written)
