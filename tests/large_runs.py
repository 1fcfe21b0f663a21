"""Logs of runs of many cases with results that nobody had to wait for: as long as those of a real run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from evaltui.core.compare.run_summary import CaseSummary
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.events import VERSION
from evaltui.core.model.outcome import Status
from evaltui.core.model.spending import Cost
from evaltui.core.secrets import Secrets
from evaltui.runs.log import RunLog
from evaltui.runs.log_header import LoggedSet

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
) -> Path:
    """The log of a run of so many cases of one turn, 3 KB each; every one of `failed` failed.

    Of a shard, its number from 1 and how many there are, it has every so many-th case. `fingerprint` is that
    of the file of the set.
    """
    numbers = range(cases) if shard is None else range(shard[0] - 1, cases, shard[1])
    log = RunLog.create_at(path, _header(cases, numbers, shard, fingerprint), Secrets())
    log.event({"kind": "agent", "name": "echo", "framework": "function", "model": ""})
    for number in numbers:
        _write(log, number, passed=number % failed > 0)
    log.close({"status": "FAILED", "seconds": cases / 500})
    return path


def _header(
    cases: int, numbers: Iterable[int], shard: tuple[int, int] | None, fingerprint: str | None
) -> dict[str, Any]:
    eval_ids = tuple(map(eval_id, numbers))
    config = {"criteria": {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}}
    places = None if shard is None else tuple(numbers)
    logged = LoggedSet(
        SET, "echoes", eval_ids, config, whole=shard is None, places=places, fingerprint=fingerprint
    )
    header = {
        "started": f"2026-01-02T03:04:{0 if shard is None else shard[0]:02}+00:00",
        "event_version": VERSION,
        "agent_dir": ".",
        "sets": [logged.to_json()],
        "runs": 1,
    }
    if shard is not None:
        whole = {SET: {"cases": cases, "fingerprint": "same", "whole": True}}
        number, count = shard
        header["shards"] = {"numbers": [number], "count": count, "divided_by": "hash", "sets": whole}
    return header


def _write(log: RunLog, number: int, *, passed: bool) -> None:
    case, name = (
        CaseId(SET, eval_id(number)),
        {"path": SET, "set": "echoes", "case": eval_id(number), "repeat": 0},
    )
    said = f"please say {number} to me {_AGAIN}"
    answer = said if passed else "no"
    log.started(case, "echoes", 0)
    log.event({"kind": "user", "content": _content("user", said), "turn": 0, "t": 1.5, **name})
    log.event(
        {"kind": "text", "content": _content("model", answer), "agent": "echo", "turn": 0, "t": 1.5, **name}
    )
    score, status = (1.0, "PASSED") if passed else (0.0, "FAILED")
    metrics = [
        _metric("tool_trajectory_avg_score", 1.0, "PASSED", 1.0),
        _metric("response_match_score", score, status, 0.8),
    ]
    metrics += [
        _metric(one, 0.0, "INFORMATIONAL") for one in ("tool_call_count_v1", "invocation_duration_v1")
    ]
    diff = {"score": 1.0, "both": said} if passed else {"score": 0.0, "expected": said, "actual": answer}
    turn = {"expectation": "unspecified", "calls": [], "response": diff}
    result = {"status": status, "metrics": metrics, "turns": [turn], "seconds": 0.006, "final_state": {}}
    log.repeat(case, "echoes", 0, {**result, "expects": f"{number:012x}", "spent": {"unseen": 1}})
    log.result(
        CaseSummary(
            "echoes",
            case.eval_id,
            Status(status),
            passed=int(passed),
            policy_met=passed,
            scores={"tool_trajectory_avg_score": 1.0, "response_match_score": score},
            seconds=0.006,
            expects=f"{number:012x}",
            path=SET,
            costs={"agent": Cost(unseen=1)},
        )
    )


def _content(role: str, text: str) -> dict[str, Any]:
    return {"parts": [{"text": text}], "role": role}


def _metric(name: str, score: float, status: str, threshold: float | None = None) -> dict[str, Any]:
    known = {
        "name": name,
        "score": score,
        "status": status,
        "per_invocation": [{"score": score, "status": status}],
    }
    return known if threshold is None else known | {"threshold": threshold}
