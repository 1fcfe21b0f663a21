"""Reports of runs of many cases: written case by case, whatever their format."""

from __future__ import annotations

import gc
import json
import re
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from example_runs import strictly_read
from hypothesis import example, given
from hypothesis import strategies as st
from large_runs import eval_id, write_run
from stored_runs import change

from evaltui.commands.output import ReportTarget, write_reports
from evaltui.core.compare.repeats import case_over_repeats
from evaltui.core.compare.run_summary import summarize
from evaltui.core.conversation.invocations import invocations_from_events
from evaltui.core.model import events
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.errors import ErrorInfo
from evaltui.core.model.events import Event
from evaltui.core.model.judgement import Judgement
from evaltui.core.model.outcome import (
    ArgDiff,
    Call,
    CallDiff,
    CaseResult,
    InvocationScore,
    MetricResult,
    RepeatResult,
    StateDiff,
    Status,
    TurnResult,
)
from evaltui.core.model.text_diff import OUTPUT, AuthoredText, ResponseDiff
from evaltui.core.secrets import Secrets
from evaltui.project.run_settings import RunSettings
from evaltui.reports import console
from evaltui.reports.html import bodies, rows
from evaltui.reports.html.page import html_report
from evaltui.reports.junit import junit_report
from evaltui.reports.stored import stored_report
from evaltui.runs import report
from evaltui.runs.history import open_run
from evaltui.runs.report import ReportedCases
from evaltui.runs.run_file import Ending
from evaltui.runs.run_header import RunHeader, SelectedSet
from evaltui.runs.run_tables import case_json
from evaltui.runs.run_writer import RunWriter
from evaltui.text.json_pieces import json_pieces
from evaltui.text.values import valid_json


class Unmasked(Secrets):
    """Masks nothing, as a run of which nobody knew that something is a secret."""

    def may_hold_secret(self, text):
        return False


FORMATS = ("json", "csv", "junit", "console", "markdown", "html")
CASES = 6


@pytest.fixture
def few(monkeypatch):
    """A run of more than two cases is one of many."""
    monkeypatch.setattr(console, "_MAX_LISTED", 2)


@pytest.mark.parametrize("format", FORMATS)
def test_a_writer_holds_the_case_that_it_writes_and_no_others(tmp_path, monkeypatch, few, format):
    log = write_run(tmp_path / "run.sqlite", CASES, failed=1)
    held = []
    read = report.result_of

    def counting(*which):
        held.append(sum(type(one) is CaseResult for one in gc.get_objects()))
        return read(*which)

    run = stored_report(open_run(log), Secrets())
    gc.collect()
    before = sum(type(one) is CaseResult for one in gc.get_objects())
    monkeypatch.setattr(report, "result_of", counting)
    out = tmp_path / "out"
    assert write_reports(run, [ReportTarget(format, out)])
    assert "00005" in out.read_text()
    assert len(held) >= CASES or format == "json"
    # Those that were read before are variables until the next ones are read.
    assert max(held, default=0) - before <= 2


@pytest.mark.parametrize("format", FORMATS)
def test_a_report_that_cannot_be_made_leaves_the_file_as_it_was(tmp_path, few, format):
    log = write_run(tmp_path / "run.sqlite", CASES, failed=1)
    out = tmp_path / "out"
    out.write_text("before")
    run = stored_report(open_run(log), Secrets())
    change(log, f"UPDATE repeats SET result = 'x' WHERE case_id = {CASES}")
    with pytest.raises(ValueError, match="is damaged"):
        write_reports(run, [ReportTarget(format, out)])
    assert out.read_text() == "before"
    assert {one.name for one in tmp_path.iterdir()} == {"run.sqlite", "out"}


# As a file of a run has them: JSON, in which all but ASCII is escaped.
KNOWN = ['quo"te "so"', "back\\slash", "schlüssel", "two\nlines\there", "🎩 top hat", "correct-horse-battery"]
LIKE_KEYS = [
    "sk-" + "é" * 20,
    "\\ghp_" + "a1" * 18,
    "postgres://shöp:s3\\cr3t@db",
    "bearer\u00a0abcdef123456789",
]


def _in_all_fields(secret: str) -> Iterator[tuple[RepeatResult, list[Event]]]:
    """Results, and events, with a text in a single one of their fields each."""
    text = f"\na {secret} b"
    metric = MetricResult("m", 0.0, 1.0, Status.FAILED)
    score = InvocationScore(0.0, Status.FAILED, judgements=(Judgement("", "", 0.0, text),))
    turn = TurnResult("unspecified", (), ResponseDiff(None, None))
    call = CallDiff(
        "changed", Call("pay", {}), Call("pay", {}), (ArgDiff("a", "changed", 1, {text: [text]}),)
    )
    failed = RepeatResult(Status.FAILED)
    for changes in (
        {"error": ErrorInfo("E", text, kind=None)},
        {"error": ErrorInfo("E", "", traceback=text, kind=None)},
        {"metrics": (replace(metric, reason=text),)},
        {"metrics": (replace(metric, details={text: 1.0}),)},
        {"metrics": (replace(metric, per_invocation=(score,)),)},
        {"turns": (replace(turn, response=ResponseDiff(text, None)),)},
        {"turns": (replace(turn, calls=(call,)),)},
        {"turns": (replace(turn, unscored=(AuthoredText(OUTPUT, text),)),)},
        {"turns": (replace(turn, user=text),)},
        {"state": (StateDiff(text, {"a": text}, None),)},
        {"stopped": text},
    ):
        yield replace(failed, **changes), []
    user = Event("user", {"role": "user", "parts": [{"text": "pay"}]}, turn=0)
    for event in (
        events.text(text),
        events.tool_call("pay", {text: 1}),
        events.tool_result("pay", {"all": [text]}),
        Event(
            "user", {"role": "user", "parts": [{"function_response": {"name": "f", "response": {"a": text}}}]}
        ),
    ):
        yield failed, [user, replace(event, turn=0)]


@pytest.mark.parametrize("secret", [*KNOWN, *LIKE_KEYS])
def test_nothing_is_read_of_a_large_run_with_a_secret(tmp_path, few, secret):
    results = dict(enumerate(_in_all_fields(secret)))
    header = RunHeader(
        (SelectedSet("pay", "pay", tuple(map(eval_id, results))),),
        RunSettings(),
        started=datetime(2026, 1, 2, tzinfo=UTC),
        agent_dir=".",
    )
    # It is named as a secret after the run.
    log = RunWriter(tmp_path / "run.sqlite", header, Unmasked())
    for number, (result, what) in results.items():
        for event in what:
            log.add_event(replace(event, path="pay", set="pay", case=eval_id(number)))
        done = replace(result, actual=tuple(invocations_from_events(what)))
        log.add_repeat(CaseId("pay", eval_id(number)), "pay", 0, done)
        over_repeats = case_over_repeats("pay", eval_id(number), [done], "all", "pay")
        log.add_case(summarize(over_repeats), over_repeats)
    log.close(Ending(Status.FAILED))
    run, secrets = open_run(log.path), Secrets({"SHOP_API_KEY": secret} if secret in KNOWN else {})
    read = ReportedCases.of_run(run, secrets)
    for case, reported in zip(read, read.as_json, strict=True):
        assert json.loads(json.dumps(reported)) == json.loads(json.dumps(case_json(case)))
        assert case == secrets.masked(run.case(case.id)) != run.case(case.id)


def test_cases_that_simply_passed_are_written_to_junit_without_being_read(tmp_path, monkeypatch):
    log = write_run(tmp_path / "run.sqlite", CASES, failed=4)
    read = report.result_of
    asked = []
    monkeypatch.setattr(
        report,
        "result_of",
        lambda file, case, *how: asked.append(case.id.eval_id) or read(file, case, *how),
    )
    assert "".join(junit_report(stored_report(open_run(log), Secrets()))).count("<testcase") == CASES
    assert asked == [eval_id(0), eval_id(4)]


def test_the_page_of_a_large_run_lists_what_did_not_pass_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "MAX_ROWS", 3)
    run = stored_report(open_run(write_run(tmp_path / "run.sqlite", 5, failed=2)), Secrets())
    page = "".join(html_report(run))
    assert page.count('<details class="case"') == 3
    assert "Not listed: 2 passed cases. The CSV and JSON reports have all cases." in page
    assert 'data-status="PASSED"' not in page
    run = stored_report(open_run(write_run(tmp_path / "all.sqlite", 5, failed=1)), Secrets())
    page = "".join(html_report(run))
    assert page.count('<details class="case"') == 3
    assert "Not listed: 2 cases that did not pass. The CSV" in page


def test_lists_of_a_document_are_written_item_by_item():
    taken = []

    def items():
        for number in range(3):
            taken.append(number)
            yield {"number": number, "text": "a\nb"}

    document = {"a": 1, "none": iter(()), "inner": {"b": [], "items": items()}}
    pieces = json_pieces(document)
    read = ""
    while '"number": 0' not in read:
        read += next(pieces)
    assert taken == [0]
    inner = {"b": [], "items": [{"number": number, "text": "a\nb"} for number in range(3)]}
    assert strictly_read([read, *pieces]) == {"a": 1, "none": [], "inner": inner}


@pytest.mark.thorough
@pytest.mark.parametrize("format", FORMATS)
def test_the_memory_of_a_writer_does_not_grow_with_the_cases(tmp_path, monkeypatch, format):
    monkeypatch.setattr(console, "_MAX_LISTED", 10)
    monkeypatch.setattr(bodies, "_MAX_BYTES_IN_MEMORY", 1)

    def peak(cases: int) -> int:
        run = stored_report(open_run(write_run(tmp_path / f"{cases}.sqlite", cases, failed=10)), Secrets())
        assert len(run.summaries) == cases
        tracemalloc.start()
        assert write_reports(run, [ReportTarget(format, tmp_path / "out")])
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    # Modules, templates and caches are there then.
    peak(100)
    small, large = peak(300), peak(700)
    # Of a case there may be its place, its id and the line of one that failed, not its 3 KB.
    assert (large - small) / 400 < 1_000


def test_counts_of_a_page_have_their_commas(tmp_path):
    page = "".join(
        html_report(stored_report(open_run(write_run(tmp_path / "run.sqlite", 1200, failed=1100)), Secrets()))
    )
    assert "✓ 1,198 passed" in page
    assert "1,198/1,200 cases passed" in page
    # Messages of users have numbers, too.
    assert not re.search(r"\b1198(?: passed|/1)", page)


def nested(depth):
    return [nested(depth - 1)] if depth else "deep"


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text(st.characters())
        | st.sampled_from([1e16, 1e-5, 1e-4, 0.00001234, -1e22, 2**70, "1e5", "\x1b\x7f\u2028"]),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters()), inner),
    )
)
@example(nested(400))
def test_a_value_is_written_as_json_writes_it(value):
    text = "".join(json_pieces({"value": value}))
    assert (
        text
        == json.dumps({"value": valid_json(value)}, indent=2, ensure_ascii=False).replace("##", "#\\u0023")
        + "\n"
    )
