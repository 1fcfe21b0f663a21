"""Events of cases: followed while they run, found again in the log, in bounds."""

import json
from dataclasses import replace

import pytest
from stored_runs import add_case

from evaltui.core.compare.run_summary import CaseSummary
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.events import Event
from evaltui.core.model.outcome import CaseResult, RepeatResult, Status
from evaltui.core.model.stored_cases import StoredCase
from evaltui.runs.run_header import RunHeader
from evaltui.runs.run_writer import begin_run
from evaltui.runs.store import RunStore
from evaltui.workbench.messages import Messages, ResultsChanged
from evaltui.workbench.result.stored_results import RunResults, StoredResult
from evaltui.workbench.state import CaseOutcome, RunRef
from evaltui.workbench.trace import traces as traces_module
from evaltui.workbench.trace.traces import Traces
from evaltui.workbench.workbench import Workbench

TALKER = """
    import sys
    import time
    from evaltui.events import text, tool_call, tool_result

    def root_agent(message, session):
        print(f"heard {message}\\n", end="")
        print("\\x1b[2J careful", file=sys.stderr, flush=True)
        if message == "raise":
            raise ValueError("not today")
        if message == "forever":
            while True:
                time.sleep(0.001)
                yield text("still here")
        yield tool_call("look", {"at": message}, id="c1")
        yield tool_result("look", {"seen": 1}, id="c1")
        yield text(message)
"""


@pytest.fixture
def talker(write_agent, write_set):
    folder = write_agent(TALKER)
    write_set(folder, first=("hello", "hello"), second=("bye", "bye"), third=("raise", ""))
    return folder


async def opened(folder):
    workbench = Workbench(folder)
    await workbench.open()
    return workbench


async def ran(folder, until):
    workbench = await opened(folder)
    workbench.runs.run_all()
    await until(lambda: workbench.runs.current.over)
    return workbench


async def trace_of(workbench, eval_id, until):
    key = CaseId(workbench.sets.listed[0].case_path, eval_id)
    await until(lambda: workbench.outcomes.trace(key))
    return workbench.outcomes.trace(key)


def said(trace):
    return [event.kind for event in trace.events if event.kind != "console"]


async def test_each_case_has_its_own_events_also_where_several_ran_at_once(talker, until):
    workbench = await ran(talker, until)
    for eval_id, kinds in (
        ("first", ["user", "tool_call", "tool_result", "text"]),
        ("second", ["user", "tool_call", "tool_result", "text"]),
        ("third", ["user", "error"]),
    ):
        trace = await trace_of(workbench, eval_id, until)
        assert said(trace) == kinds
        assert {event.case for event in trace.events} == {eval_id}
        assert (trace.run.number, trace.live, trace.problem) == (1, False, "")


async def test_the_last_run_of_a_case_counts(talker, until):
    workbench = await ran(talker, until)
    workbench.runs.run_case()
    await until(lambda: workbench.runs.current.over)
    assert (await trace_of(workbench, "first", until)).run.number == 2
    assert (await trace_of(workbench, "second", until)).run.number == 1


async def test_a_case_that_was_not_run_has_no_trace(talker):
    workbench = await opened(talker)
    assert workbench.outcomes.trace(CaseId(workbench.sets.listed[0].case_path, "first")) is None


async def test_without_a_log_the_last_cases_are_kept_in_memory(talker, until, monkeypatch):
    def refuse(*args, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("evaltui.runs.execution.begin_run", refuse)
    monkeypatch.setattr(traces_module, "_MAX_WITHOUT_LOG", 2)
    workbench = await ran(talker, until)
    found = [await trace_of(workbench, eval_id, until) for eval_id in ("first", "second", "third")]
    assert sum(bool(trace.events) for trace in found) == 2
    assert "No run log" in next(trace.problem for trace in found if not trace.events)


async def test_a_log_that_was_deleted_is_said(talker, until):
    workbench = await ran(talker, until)
    workbench.runs.current.log.unlink()
    trace = await trace_of(workbench, "first", until)
    assert not trace.events
    assert trace.problem == "Run log of run 1 was deleted; run again"


async def test_a_running_case_is_followed_within_bounds(write_agent, write_set, until, monkeypatch):
    monkeypatch.setattr(traces_module, "MAX_EVENTS", 30)
    folder = write_agent(TALKER)
    write_set(folder, endless=("forever", ""))
    workbench = await opened(folder)
    workbench.runs.run_case()
    key = CaseId(workbench.sets.listed[0].case_path, "endless")
    await until(lambda: (trace := workbench.outcomes.trace(key)) and trace.left_out > 100)
    trace = workbench.outcomes.trace(key)
    assert trace.live
    assert len(trace.events) == 30
    workbench.runs.cancel()
    await until(lambda: workbench.runs.current.over)
    assert workbench.outcomes.trace(key) is None


async def test_of_several_runs_of_a_case_the_deciding_one_is_shown(write_agent, write_set, until):
    folder = write_agent("""
        calls = []

        def root_agent(message, session):
            calls.append(1)
            return "wrong" if len(calls) == 2 else message
    """)
    write_set(folder, sometimes=("hello", "hello"))
    config = {"criteria": {"response_match_score": 0.8}, "evaltui": {"repeats": {"runs": 3}}}
    (folder / "test_config.json").write_text(json.dumps(config), encoding="utf-8")
    workbench = await ran(folder, until)
    trace = await trace_of(workbench, "sometimes", until)
    assert trace.repeats == 3
    assert trace.events[-1].content["parts"][0]["text"] == "wrong"


def test_the_gravest_repeat_decides_and_of_equals_the_first():
    def result(*statuses):
        return CaseResult("case", Status.FLAKY, repeats=tuple(RepeatResult(status) for status in statuses))

    passed, failed, error = Status.PASSED, Status.FAILED, Status.ERROR
    assert result(passed, error, failed, failed).deciding_repeat == 2
    assert result(passed, passed).deciding_repeat == 0
    assert result().deciding_repeat == 0


async def test_a_case_that_is_tried_again_begins_anew(tmp_path, until):
    told, messages = [], Messages()
    messages.subscribe(told.append, ResultsChanged)
    outcomes = {}
    traces = Traces(outcomes.get, messages)
    key = CaseId("a.evalset.json", "case")
    log = begin_run(RunStore(tmp_path), RunHeader())
    # Longer than what is read at once.
    lived = "lived" * 20_000
    for text in ("died", lived):
        log.start(key, "set", 0)
        traces.started(key, RunRef(1), 0)
        event = Event("text", {"parts": [{"text": text}]}, path=key.path, set="set", case="case")
        log.add_event(event)
        traces.happened(key, event)
    assert [event.content["parts"][0]["text"] for event in traces.live_events(key)] == [lived]
    summary = CaseSummary("set", "case", Status.PASSED, path=key.path)
    logged = StoredResult(summary, RunResults(log.path, "run 1"), add_case(log, summary))
    log.commit()
    log.close()
    outcomes[key] = CaseOutcome(logged, RunRef(1), StoredCase("{}"), EvalConfig(), logged=logged)
    traces.done(key, is_logged=True)
    await until(lambda: traces.get(key, 0))
    assert told
    assert [event.content["parts"][0]["text"] for event in traces.get(key, 0).events] == [lived]
    # Another run, which was not stored and has no result.
    traces.started(key, RunRef(2), 0)
    traces.happened(key, replace(event, content={"parts": [{"text": "other"}]}))
    traces.done(key, is_logged=False)
    assert [event.content["parts"][0]["text"] for event in traces.get(key, 0).events] == [lived]
    assert [event.content["parts"][0]["text"] for event in traces.events_of(key)[0]] == [lived]


async def test_results_are_kept_without_what_the_log_has(talker, until):
    workbench = await ran(talker, until)
    scored = workbench.outcomes.get(CaseId(workbench.sets.listed[0].case_path, "first"))
    assert scored.result.turns
    assert all(not repeat.actual for repeat in scored.result.repeats)


async def test_what_is_printed_is_kept_with_its_source(talker, until):
    workbench = await ran(talker, until)
    await until(lambda: workbench.console.total >= 6)
    lines = [(line.source, line.text, line.run) for line in workbench.console]
    assert ("stdout", "heard hello", 1) in lines
    assert ("stderr", "\x1b[2J careful", 1) in lines
    assert workbench.console.unread == workbench.console.total
    workbench.console.mark_seen()
    assert workbench.console.unread == 0
