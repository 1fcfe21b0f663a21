"""A run written down while it happens, so that an interrupted one is not lost."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from evaltui.core import events
from evaltui.core.outcome import Status
from evaltui.core.stored_cases import heads_of
from evaltui.files.runs import RunLog
from evaltui.reports.json_report import case_result_json
from evaltui.runner.plan import AgentLoaded, CaseDone, CaseStarted, Happened, RunPlan, Update


class LoggedRun:
    """Appends what a run tells to its log in the agent directory."""

    def __init__(self, log: RunLog, started: datetime) -> None:
        self._log = log
        self._started = started

    @classmethod
    def start(cls, plan: RunPlan, started: datetime) -> LoggedRun:
        """Create the log. Raises OSError where the agent directory cannot be written."""
        header = {
            "event_version": events.VERSION,
            "started": started.isoformat(),
            "agent_dir": str(plan.agent_dir),
            "agent_name": plan.agent_name,
            "selected": {
                one.eval_set_id: [head.eval_id for head in heads_of(one.cases)] for one in plan.sets
            },
            "runs": plan.runs,
        }
        return cls(RunLog.create(plan.agent_dir, header), started)

    @property
    def path(self) -> Path:
        return self._log.path

    @property
    def size(self) -> int:
        """Bytes written so far."""
        return self._log.size

    def take(self, update: Update) -> None:
        match update:
            case Happened(event):
                self._log.event(event.to_json())
            case CaseStarted(eval_set_id, eval_id, repeat):
                # A case that is tried again after a crash starts anew: what came before does not count.
                self._log.event(
                    {"kind": "case_started", "set": eval_set_id, "case": eval_id, "repeat": repeat}
                )
            case AgentLoaded(info):
                self._log.event({"kind": "agent", **info})
            case CaseDone(result):
                self._log.result(case_result_json(result, with_actual=False))

    def close(self, status: Status | None = None) -> None:
        """End the log; without a status it stays that of a run that was interrupted."""
        seconds = (datetime.now(UTC) - self._started).total_seconds()
        self._log.close({"status": status, "seconds": round(seconds, 3)} if status else None)
