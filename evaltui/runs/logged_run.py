"""A run written down while it happens, so that an interrupted one is not lost."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evaltui.core.compare.run_summary import summarize
from evaltui.core.model import events
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.modes import DEFAULT_MODE
from evaltui.core.model.outcome import Status
from evaltui.core.model.stored_cases import ids_and_turns
from evaltui.core.model.stored_results import repeat_to_json
from evaltui.files.agent_files import files_of
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
from evaltui.runs.header import LoggedSet
from evaltui.runs.log import RunLog
from evaltui.runs.log_reader import lines_of_cases

Json = dict[str, Any]
# A run of a case, and its number from 0.
Repeat = tuple[CaseId, int]


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
            "sets": [_set(plan, one).to_json() for one in plan.sets],
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
            if (line.case, line.repeat) not in repeats:
                continue
            match line.kind:
                case "case_started":
                    self._log.started(line.case, line.eval_set_id, line.repeat)
                case "repeat_result":
                    self._log.repeat(line.case, line.eval_set_id, line.repeat, line.data["result"])
                case _:
                    self._log.event({**line.data, "path": line.case.path})

    def write(self, update: Update) -> None:
        match update:
            case Happened(event, text):
                if text:
                    self._log.event_text(text)
                else:
                    self._log.event(event.to_json())
            case CaseStarted(case, eval_set_id, repeat):
                self._log.started(case, eval_set_id, repeat)
            case AgentLoaded(info):
                self._log.event({"kind": "agent", **info})
            case RepeatDone(case, eval_set_id, repeat, result):
                self._log.repeat(case, eval_set_id, repeat, repeat_to_json(result))
            case CaseDone(result):
                self._log.result(summarize(result))

    def close(self, status: Status | None = None) -> None:
        """End the log; without a status it stays that of a run that was interrupted."""
        seconds = (datetime.now(UTC) - self._started).total_seconds()
        self._log.close({"status": status, "seconds": round(seconds, 3)} if status else None)


def _set(plan: RunPlan, one: SetPlan) -> LoggedSet:
    return LoggedSet(
        plan.path_of(one),
        one.eval_set_id,
        tuple(eval_id for eval_id, _ in ids_and_turns(one.cases)),
        one.config.model_dump(mode="json", exclude_defaults=True),
        one.whole,
    )
