"""A run written down while it happens, so that an interrupted one is not lost."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evaltui.core import events
from evaltui.core.compare import summarize
from evaltui.core.outcome import Status
from evaltui.core.recordings.choices import DEFAULT_MODE
from evaltui.core.stored_cases import heads_of
from evaltui.core.stored_results import repeat_to_json
from evaltui.files.folders import agent_folder
from evaltui.files.history import files_of
from evaltui.files.runs import RunLog, lines_of_cases
from evaltui.runner.plan import (
    AgentLoaded,
    CaseDone,
    CaseStarted,
    Happened,
    RepeatDone,
    RunPlan,
    SetPlan,
    Update,
)

Json = dict[str, Any]
# A run of a case: the ids of set and case, and its number from 0.
Repeat = tuple[str, str, int]


class LoggedRun:
    """Appends what a run tells to its log in the agent directory."""

    def __init__(self, log: RunLog, started: datetime) -> None:
        self._log = log
        self._started = started

    @classmethod
    def start(cls, plan: RunPlan, started: datetime, given: Mapping[str, Any] | None = None) -> LoggedRun:
        """Create the log. `given` is what else the header should say.

        Raises OSError where the agent directory cannot be written.
        """
        header = {
            "event_version": events.VERSION,
            "started": started.isoformat(),
            "agent_dir": str(plan.agent_dir),
            "agent_name": plan.agent_name,
            "selected": _selected(plan),
            "sets": {one.eval_set_id: _set(one, plan.agent_dir) for one in plan.sets},
            "runs": plan.runs,
            "pass_if": plan.pass_if,
            "adk_verdicts": plan.adk_verdicts,
            "record": plan.record if plan.record != DEFAULT_MODE else None,
            "tools": plan.tools,
            "files": files_of(plan.agent_dir),
            **(given or {}),
        }
        known = {name: value for name, value in header.items() if value not in (None, False)}
        return cls(RunLog.create(plan.agent_dir, known), started)

    @property
    def path(self) -> Path:
        return self._log.path

    @property
    def has_masked(self) -> bool:
        """Whether there were secrets in what the run told so far."""
        return self._log.has_masked

    @property
    def size(self) -> int:
        """Bytes written so far."""
        return self._log.size

    def carry_over(self, earlier: Path, repeats: Collection[Repeat]) -> None:
        """Copy what happened in runs of cases, and their results, from another log.

        Raises OSError, and ValueError where that log is damaged.
        """
        for line in lines_of_cases(earlier):
            repeat = line.get("set", ""), line["case"], line.get("repeat", 0)
            if repeat not in repeats:
                continue
            match line["kind"]:
                case "case_started":
                    self._log.started(*repeat)
                case "repeat_result":
                    self._log.repeat(*repeat, line["result"])
                case _:
                    self._log.event(line)

    def take(self, update: Update) -> None:
        match update:
            case Happened(event):
                self._log.event(event.to_json())
            case CaseStarted(eval_set_id, eval_id, repeat):
                self._log.started(eval_set_id, eval_id, repeat)
            case AgentLoaded(info):
                self._log.event({"kind": "agent", **info})
            case RepeatDone(eval_set_id, eval_id, repeat, result):
                self._log.repeat(eval_set_id, eval_id, repeat, repeat_to_json(result))
            case CaseDone(result):
                self._log.result(summarize(result).to_json())

    def close(self, status: Status | None = None) -> None:
        """End the log; without a status it stays that of a run that was interrupted."""
        seconds = (datetime.now(UTC) - self._started).total_seconds()
        self._log.close({"status": status, "seconds": round(seconds, 3)} if status else None)


def _selected(plan: RunPlan) -> dict[str, list[str]]:
    selected: dict[str, list[str]] = {}
    for one in plan.sets:
        # Files may share a set id.
        selected.setdefault(one.eval_set_id, []).extend(head.eval_id for head in heads_of(one.cases))
    return selected


def _set(plan: SetPlan, agent_dir: Path) -> Json:
    """Where a set is, as seen from the agent's folder; whether all of it is run, and what scores it."""
    data: Json = {"config": plan.config.model_dump(mode="json", exclude_defaults=True)}
    if plan.path is not None:
        path, folder = plan.path.resolve(), agent_folder(agent_dir).resolve()
        data["path"] = str(path.relative_to(folder) if path.is_relative_to(folder) else path)
    return data | ({"whole": True} if plan.whole else {})
