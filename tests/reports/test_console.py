import re
from dataclasses import replace

import pytest
from example_runs import answer_metric, case, crashed, failed, flaky, mixed, passed, report, said
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from evaltui.core.compare.diff import align_calls
from evaltui.core.model.outcome import (
    Call,
    ErrorInfo,
    MetricResult,
    RepeatResult,
    Status,
    TurnResult,
)
from evaltui.core.model.text_diff import ResponseDiff
from evaltui.reports.console import render_console
from evaltui.runs.run_header import SelectedSet


def lines(run, *, color=False, width=100):
    return "".join(render_console(run, color=color, width=width)).splitlines()


def line_of(run, eval_id, **options):
    return next(line for line in lines(run, **options) if line[2:].startswith(eval_id))


def details_of(run, eval_id, **options):
    """The lines below the case's own heading."""
    text = "".join(render_console(run, **{"color": False, "width": 100, **options}))
    block = re.split(r"^── . ", text, flags=re.MULTILINE)[1:]
    return next(one for one in block if one.startswith(f"{eval_id} "))


def test_the_sum_counts_every_outcome():
    run = replace(mixed(), log=".evaltui/runs/x.sqlite")
    assert lines(run)[-1] == (
        "1 passed, 1 failed, 1 error, 1 not evaluated, 2 flaky in 6.2 s · log .evaltui/runs/x.sqlite"
    )
    assert lines(report(crashed("a"), crashed("b")))[-1] == "2 errors in 6.2 s"
    assert "passed" not in lines(report(failed()))[-1]
    assert lines(report())[-1] == "no case run in 6.2 s"


def test_a_log_path_is_never_cut():
    log = f"/{'folder/' * 20}x.sqlite"
    assert lines(report(passed(), log=log), width=60)[-2:] == ["1 passed in 6.2 s", f"log {log}"]


def test_details_of_a_failure():
    assert details_of(report(failed()), "thermostat_night", width=98).splitlines()[1:-2] == [
        '  turn 2: set_temperature: degrees is "19" (string), expected 19; unexpected call notify_user;',
        '  final state kitchen.degrees is "19" (string), expected 19',
        "",
        "  ✗ tool_trajectory_avg_score  0.50 < 1.00",
        "  ✓ response_match_score       0.89 ≥ 0.80",
        "",
        "  turn 2  1/3 calls",
        "    user      And the kitchen?",
        "    = get_mode",
        "    ≠ set_temperature",
        '        location  "Kitchen"',
        f'      ≠ degrees   19  →  "19"{"string, expected integer":>69}',
        f'    + notify_user  message "too cold"{"unexpected call":>61}',
        "    before    not scored  root_agent: Let me check.",
        "    response  ≠ 0.77 < 0.80  The kitchen is [-now-] {+set to+} 19 °C.",
        "",
        "  final state",
        f'    ≠ kitchen.degrees  19  →  "19"{"string, expected integer":>64}',
    ]


def test_tracebacks_are_not_cut_to_the_width_but_to_their_end():
    trace = "\n".join(f"frame {n} {'x' * 150}" for n in range(40))
    run = report(replace(crashed(), error=ErrorInfo("E", "m", trace, "a.py:1", kind=None)))
    details = details_of(run, "away_for_a_week")
    assert f"frame 39 {'x' * 150}" in details
    assert "frame 15 " not in details
    assert "16 lines above" in details


@pytest.mark.parametrize(("actual", "shown"), [((), False), ((said("hello"),), True)])
def test_the_turn_that_crashed_is_shown_where_it_was_reached(actual, shown):
    missing = TurnResult("these calls", align_calls([Call("dim", {})], []), ResponseDiff("Enjoy.", None))
    run = report(
        case("c", Status.ERROR, error=ErrorInfo("E", "m", kind=None), turns=(missing, missing), actual=actual)
    )
    assert ("turn 1" in details_of(run, "c")) is shown
    assert "turn 2" not in details_of(run, "c")


def test_the_error_of_a_metric_is_told_beside_a_failure():
    judge = MetricResult(
        "judge", None, 0.5, Status.ERROR, error=ErrorInfo("RuntimeError", "judge 500", "the trace", kind=None)
    )
    run = report(case("both", Status.FAILED, metrics=(judge, *failed().metrics), turns=failed().turns))
    details = details_of(run, "both")
    assert re.search(r"! judge +error +RuntimeError: judge 500\n", details)
    assert "    the trace\n" in details
    assert line_of(run, "both").startswith("✗ both  0.50  turn 2: ")


def test_the_trajectories_of_a_flaky_case():
    dims = TurnResult(
        "these calls", align_calls([], [Call("dim", {"to": 5})]), ResponseDiff("Enjoy.", "Enjoy.")
    )
    asks = TurnResult("no calls", align_calls([], [Call("ask", None)] * 2), ResponseDiff("Enjoy.", "Enjoy."))
    varying = [
        (Status.PASSED, [dims]),
        (Status.FAILED, [dims]),
        (Status.FAILED, []),
        (Status.PASSED, [dims, asks]),
    ]
    repeats = tuple(RepeatResult(status, turns=tuple(turns)) for status, turns in varying)
    bad = case("c", Status.FLAKY, metrics=failed().metrics, repeats=repeats, policy_met=False)
    assert (
        "  calls      3 distinct trajectories\n"
        "               2×  ✓✗ dim (to 5)  repeats 1, 2\n"
        "               1×  ✗  no calls  repeat 3\n"
        "               1×  ✓  turn 1: dim (to 5); turn 2: ask, ask  repeat 4\n"
    ) in details_of(report(bad), "c")


def test_an_answer_that_is_missing():
    turn = TurnResult("no calls", (), ResponseDiff("I can switch lights.", None))
    bad = case("c", Status.FAILED, metrics=(answer_metric(0.0),), turns=(turn,))
    assert "    response  ≠ 0.00 < 0.80  no response, expected: I can switch lights.\n" in details_of(
        report(bad), "c"
    )


@pytest.mark.parametrize(
    ("expected", "actual", "shown"),
    [
        ("the café now", "the cafe\u0301 now", "the [-caf\\u00e9-] {+cafe\\u0301+} now"),
        ("café", "cafe\u0301", "[-caf\\u00e9-] {+cafe\\u0301+}"),
        ("now café", "nów café", "[-now-] {+nów+} café"),
    ],
)
def test_words_that_look_alike_are_told_apart(expected, actual, shown):
    turn = TurnResult("no calls", (), ResponseDiff(expected, actual))
    bad = case("c", Status.FAILED, metrics=(answer_metric(0.0),), turns=(turn,))
    assert f"  {shown}\n" in details_of(report(bad), "c")


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("color", [False, True])
def test_no_line_is_wider_than_the_terminal(width, color):
    wide = failed("日本語の名前がとても長いケースです" * 3)
    run = report(wide, *mixed().cases, notes=("a note that goes on " * 10,))
    for line in lines(run, width=width, color=color):
        plain = re.sub(r"\x1b\[\d+m", "", line)
        if not plain.startswith(("config  ", '      File "')):
            assert cell_len(plain) <= width, plain


def test_colour_only_when_asked_for():
    assert "\x1b" not in "".join(render_console(mixed(), color=False, width=100))
    assert "\x1b[32m✓\x1b[0m turn_off_bedroom" in "".join(render_console(mixed(), color=True, width=100))
    stripped = re.sub(r"\x1b\[\d+m", "", "".join(render_console(mixed(), color=True, width=100)))
    assert stripped == "".join(render_console(mixed(), color=False, width=100))


def test_the_config_file_and_what_it_left_to_defaults():
    config = {"criteria": {"a": {"threshold": 0.5}}}
    path = "thermostat"
    given = SelectedSet(path, path, (), config, config_path="test_config.json", defaulted=())
    assert lines(report(passed(), sets=(given,)))[1] == "config  test_config.json"
    some = replace(given, defaulted=("a",))
    assert lines(report(passed(), sets=(some,)))[1] == "config  test_config.json, by default: a 0.5"


hostile = st.text(st.sampled_from(list("ab \n\t\r\x00\x1b[31m\x9b日é\u202e\ud800[-{+}]\"'<&")), max_size=30)


@given(hostile, hostile, hostile, st.integers(40, 130))
def test_texts_of_others_do_no_harm(name, text, other, width):
    calls = align_calls([Call(name, {text: text})], [Call(name, {text: other, other: None})])
    turn = TurnResult("these calls", calls, ResponseDiff(text, other), ((name, text),))
    error = ErrorInfo(name, text, other, text, kind=None)
    metric = MetricResult(name or "m", 0.5, 1.0, Status.FAILED, reason=other)
    bad = case(name, Status.FAILED, metrics=(metric,), turns=(turn,), error=error)
    run = report(bad, flaky(text), log=text, notes=(other,), agent=name)
    output = "".join(render_console(run, color=False, width=width))
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\ud800-\udfff]", output)
    assert all(cell_len(line) <= width for line in output.splitlines()[2:4])
