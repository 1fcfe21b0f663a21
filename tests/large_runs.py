"""Files of runs of many cases with results that nobody had to wait for: as long as those of a real run."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from evaltui.core.compare.repeats import case_over_repeats
from evaltui.core.compare.run_summary import summarize
from evaltui.core.conversation.invocations import invocations_from_events
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.events import Event
from evaltui.core.model.outcome import InvocationScore, MetricResult, RepeatResult, Status, TurnResult
from evaltui.core.model.spending import Spending
from evaltui.core.model.text_diff import ResponseDiff
from evaltui.core.secrets import Secrets
from evaltui.project.run_settings import RunSettings
from evaltui.runs.run_file import Ending
from evaltui.runs.run_header import RunHeader, SelectedSet
from evaltui.runs.run_writer import RunWriter
from evaltui.runs.shards import DividedSet, ShardsOfRun

SET = "echoes.evalset.json"
_AGAIN = "and again " * 25


def eval_id(number: int) -> str:
    """As in the sets of the benchmarks."""
    return f"case_{number:05d}"


def write_run(
    path: Path,
    cases: int,
    *,
    shard: tuple[int, int] | None = None,
    failed: int = 100,
    fingerprint: str | None = None,
    files: Mapping[str, str] | None = None,
) -> Path:
    """The log of a run of so many cases of one turn, 3 KB each; every one of `failed` failed.

    Of a shard, its number from 1 and how many there are, it has every so many-th case. `fingerprint` is that
    of the file of the set, `files` are those of the agent with theirs.
    """
    numbers = range(cases) if shard is None else range(shard[0] - 1, cases, shard[1])
    eval_ids = tuple(map(eval_id, numbers))
    config = {"criteria": {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}}
    places = tuple(numbers)
    selected = SelectedSet(
        SET, "echoes", eval_ids, config, whole=shard is None, places=places, fingerprint=fingerprint
    )
    header = RunHeader(
        (selected,),
        RunSettings(runs=1),
        started=datetime(2026, 1, 2, 3, 4, 0 if shard is None else shard[0], tzinfo=UTC),
        agent_dir=".",
        files=files or {},
        shards=None if shard is None else _shards(cases, shard),
    )
    log = RunWriter(path, header, Secrets())
    log.set_agent({"name": "echo", "framework": "function", "model": ""})
    for number in numbers:
        _write(log, number, passed=number % failed > 0)
    log.close(Ending(Status.FAILED, cases / 500))
    return path


def _shards(cases: int, shard: tuple[int, int]) -> ShardsOfRun:
    number, count = shard
    divided = DividedSet("echoes", tuple(map(eval_id, range(cases))), "same", whole=True)
    return ShardsOfRun((number,), count, "hash", {SET: divided})


def _write(log: RunWriter, number: int, *, passed: bool) -> None:
    case, name = (
        CaseId(SET, eval_id(number)),
        {"path": SET, "set": "echoes", "case": eval_id(number), "repeat": 0},
    )
    said = f"please say {number} to me {_AGAIN}"
    answer = said if passed else "no"
    log.start(case, "echoes", 0)
    question = {"kind": "user", "content": _content("user", said), "turn": 0, "t": 1.5}
    reply = {"kind": "text", "content": _content("model", answer), "agent": "echo", "turn": 0, "t": 1.5}
    asked, replied = (Event.from_json({**one, **name}) for one in (question, reply))
    log.add_event(asked)
    log.add_event(replied)
    score, status = (1.0, Status.PASSED) if passed else (0.0, Status.FAILED)
    metrics = [
        _metric("tool_trajectory_avg_score", 1.0, Status.PASSED, 1.0),
        _metric("response_match_score", score, status, 0.8),
    ]
    metrics += [
        _metric(one, 0.0, Status.INFORMATIONAL) for one in ("tool_call_count_v1", "invocation_duration_v1")
    ]
    turn = TurnResult("unspecified", (), ResponseDiff(said, answer, score))
    result = RepeatResult(
        status,
        tuple(metrics),
        turns=(turn,),
        seconds=0.006,
        final_state={},
        expects=f"{number:012x}",
        spent=Spending(unseen=1),
        actual=tuple(invocations_from_events([asked, replied])),
    )
    log.add_repeat(case, "echoes", 0, result)
    over_repeats = case_over_repeats("echoes", case.eval_id, [result], "all", SET)
    log.add_case(summarize(over_repeats), over_repeats)


def _content(role: str, text: str) -> dict[str, Any]:
    return {"parts": [{"text": text}], "role": role}


def _metric(name: str, score: float, status: Status, threshold: float | None = None) -> MetricResult:
    return MetricResult(name, score, threshold, status, per_invocation=(InvocationScore(score, status),))


def write_run_apart(path: Path, cases: int, **options: Any) -> Path:
    """As `write_run`, in another process: programs count the memory of the one that starts them as theirs."""
    process = get_context("spawn").Process(target=write_run, args=(path, cases), kwargs=options)
    process.start()
    process.join()
    assert process.exitcode == 0
    return path
