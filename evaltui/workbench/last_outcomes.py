"""What came of each case when it was last run, before this sitting.

Importing this loads the models: do it in a thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from evaltui.core.compare.repeats import pass_if_of
from evaltui.core.compare.run_comparison import config_of
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.fingerprints import case_fingerprint
from evaltui.core.model.stored_cases import StoredCase
from evaltui.core.trace.model_calls import ModelCalls
from evaltui.files.workspace import Workspace
from evaltui.runs.header import LoggedSet
from evaltui.runs.history import result_of, run_id, run_names
from evaltui.runs.listing import run_title
from evaltui.runs.log import run_logs
from evaltui.runs.log_reader import LoggedCase, StoredRun, read_run
from evaltui.runs.resuming import files_changed_since
from evaltui.workbench.documents import Documents
from evaltui.workbench.state import CaseOutcome, RunRef

# Cases that none of the newest runs had stay `not run`.
MOST_RUNS = 50
# Whoever leaves meanwhile waits for no more than these.
_AT_ONCE = 200


@dataclass(frozen=True)
class LastOutcome:
    """A case's result, the log that it is from, and where it is there."""

    key: CaseId
    scored: CaseOutcome
    log: Path
    logged: LoggedCase


def last_outcomes(
    agent_dir: Path, workspace: Workspace, documents: Documents, code: int
) -> Iterator[list[LastOutcome]]:
    """The last result of every case that has one, some at a time, those of the newest run first.

    `code` is the agent's version now; results of an agent that was changed since have version -1.
    A log that cannot be read is passed over.
    """
    wanted = {CaseId(entry.case_path, case.eval_id) for entry in workspace.sets for case in entry.cases}
    names = {run: name for name, run in run_names(agent_dir).items()}
    for log in run_logs(agent_dir)[: -MOST_RUNS - 1 : -1]:
        if not wanted:
            return
        try:
            run = read_run(log)
            found = [
                (key, logged)
                for logged in run.results
                if (key := _place(workspace, run, logged)) is not None and key in wanted
            ]
            if not found:
                continue
            changed = not run.header.files or bool(files_changed_since(log, run.header.files, agent_dir))
        except (OSError, ValueError):
            continue
        title = run_title(run.header.started, names.get(run_id(log), ""))
        reading = _Reading(run, workspace, documents, -1 if changed else code, RunRef(log=log, title=title))
        for start in range(0, len(found), _AT_ONCE):
            some = (reading.read(key, logged) for key, logged in found[start : start + _AT_ONCE])
            outcomes = [outcome for outcome in some if outcome is not None]
            wanted -= {outcome.key for outcome in outcomes}
            yield outcomes


def _place(workspace: Workspace, run: StoredRun, logged: LoggedCase) -> CaseId | None:
    return workspace.find(logged.id, logged.summary.eval_set_id, by_label=run.header.by_label)


@dataclass(frozen=True)
class _Reading:
    """A run whose results are read; `ref` is how it is shown, `code` the version of the agent's code."""

    run: StoredRun
    workspace: Workspace
    documents: Documents
    code: int
    ref: RunRef

    def read(self, key: CaseId, logged: LoggedCase) -> LastOutcome | None:
        """None for a case that cannot be shown or read."""
        opened = self.documents.open(self.workspace.by_case_path[key.path].path)
        stored, config = opened.stored_case(key.eval_id), opened.config
        if stored is None or config is None:
            return None
        log = self.run.path
        try:
            result = result_of(log, logged)
            pass_if = pass_if_of(result.policy)
        except (OSError, ValueError):
            return None
        scored = CaseOutcome(
            result,
            self.ref,
            stored,
            config.config,
            # Nobody has counted them: nothing may be run again because it was free.
            ModelCalls(known=False),
            self.code,
            pass_if=pass_if,
            outdated=tuple(self._changed(logged, stored, config.config)),
        )
        return LastOutcome(key, scored, log, logged)

    def _changed(self, logged: LoggedCase, stored: StoredCase, config: EvalConfig) -> Iterator[str]:
        """What was another one when the case was run, besides the agent."""
        expects = logged.summary.expects
        if expects and expects != case_fingerprint(stored.model()):
            yield "the case"
        began_with = self._set_of(logged)
        if began_with is None or began_with.config is None:
            return
        now = config.model_dump(mode="json", exclude_defaults=True)
        ids = logged.summary.eval_set_id, logged.id.eval_id
        if began_with.config != now and config_of(began_with.config, *ids) != config_of(now, *ids):
            yield "the config"
        elif self.run.header.data.get("adk_verdicts"):
            yield "the way of scoring"

    def _set_of(self, logged: LoggedCase) -> LoggedSet | None:
        return next((one for one in self.run.header.sets if one.path == logged.id.path), None)
