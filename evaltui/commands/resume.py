"""`evaltui run --resume`: what an interrupted run left to do, and whether it can still be done."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from evaltui.commands.usage import UsageError
from evaltui.core.compare.run_comparison import config_changes
from evaltui.core.model.case_id import CaseId
from evaltui.files.case_paths import case_path, file_of
from evaltui.files.secrets import secrets_of
from evaltui.files.workspace import open_workspace, select
from evaltui.runs.adk_results import SUFFIX as ADK_SUFFIX
from evaltui.runs.header import LoggedSet, RunHeader
from evaltui.runs.history import find_run, run_id
from evaltui.runs.log import is_being_written
from evaltui.runs.log_reader import read_header, read_run
from evaltui.runs.resuming import twins_in_words

if TYPE_CHECKING:
    from evaltui.commands.choosing import ChosenSet
    from evaltui.core.model.outcome import RepeatResult

Known = dict[CaseId, dict[int, "RepeatResult"]]

# Options that the run was begun with, and the flag of each.
_BEGUN_WITH = {
    "selectors": "SET",
    "config": "--config",
    "initial_session": "--initial-session",
    "runs": "--runs",
    "pass_if": "--pass-if",
    "agent": "--agent",
    "failed": "--failed",
    "adk_verdicts": "--adk-verdicts",
    "record": "--record",
    "tools": "--tools",
}
_MOST_NAMES = 3


@dataclass(frozen=True)
class Begun:
    """A run that is to be brought to its end, and what its log says at the top."""

    path: Path
    header: RunHeader

    @property
    def id(self) -> str:
        return run_id(self.path)


def find_begun(options: argparse.Namespace) -> Begun:
    """The run that `--resume` names. Raises SelectionError or UsageError for one that cannot be resumed."""
    path = find_run(options.agent_dir, options.resume)
    given = [flag for name, flag in _BEGUN_WITH.items() if getattr(options, name)]
    if given:
        raise UsageError(
            f"--resume: a run goes on with what it was begun with, so leave out {', '.join(given)}"
        )
    if path.name.endswith(ADK_SUFFIX):
        raise UsageError(
            f"--resume: {path} is a result file of google-adk, which does not say what is missing"
        )
    try:
        begun = Begun(path, read_header(path))
        if is_being_written(path):
            raise UsageError(f"--resume: run {begun.id} is still going on")
    except (OSError, ValueError) as error:
        raise UsageError(f"--resume: {error}") from error
    return begun


def options_of(begun: Begun, options: argparse.Namespace) -> argparse.Namespace:
    """The options, with those that the run was begun with."""
    header = begun.header.data
    paths = {name: header.get(name) for name in ("config", "initial_session")}
    return argparse.Namespace(
        **vars(options)
        | {name: Path(path) if path else None for name, path in paths.items()}
        | {"runs": header.get("runs"), "pass_if": header.get("pass_if")}
        | {"agent": header.get("agent_name"), "adk_verdicts": bool(header.get("adk_verdicts"))}
        | {"record": header.get("record"), "tools": header.get("tools")}
    )


def choose_again(begun: Begun, options: argparse.Namespace) -> list[ChosenSet]:
    """The cases that the run was begun with.

    Raises UsageError where agent, sets or configs are not what they were: half of the results would be about
    something else than the other half.
    """
    from evaltui.commands.choosing import load_chosen
    from evaltui.files.configs import find_config
    from evaltui.runs.resuming import files_changed_since

    header = begun.header
    if header.twins:
        raise _refused(begun, twins_in_words(header))
    if changed := files_changed_since(begun.path, header.files, options.agent_dir):
        raise _refused(begun, f"the agent was changed since: {_some(changed)}")
    explicit = find_config(options.agent_dir, options.config) if options.config else None
    chosen = []
    secrets = secrets_of(options.agent_dir)
    for began_with in header.sets:
        name = began_with.eval_set_id
        path = _file_of(begun, began_with, options.agent_dir)
        one = load_chosen(path, options.initial_session, explicit, frozenset(began_with.eval_ids))
        here = [case.eval_id for case in one.plan.cases]
        gone = [eval_id for eval_id in began_with.eval_ids if eval_id not in here]
        if one.plan.eval_set_id != name or gone:
            raise _refused(begun, f"{name} has no {_some(gone or began_with.eval_ids)} any more")
        # As the log has it.
        now = secrets.masked(one.plan.config.model_dump(mode="json", exclude_defaults=True))
        if config_changed := list(config_changes(began_with.config, now)):
            raise _refused(begun, f"{name} is scored otherwise: {'; '.join(config_changed)}")
        # Cases that came later are no part of this run.
        chosen.append(replace(one, plan=replace(one.plan, whole=began_with.whole)))
    if not chosen:
        raise _refused(begun, "its log does not say which cases it was begun with")
    return chosen


def _file_of(begun: Begun, one: LoggedSet, agent_dir: Path) -> Path:
    path = file_of(agent_dir, one.path)
    if one.path == one.eval_set_id and not path.is_file():
        # Who ran it knew the id only.
        return select(open_workspace(agent_dir), [one.eval_set_id])[0][0].path
    if not path.is_file():
        raise _refused(begun, f"{path} is not there any more")
    return path


def known_results(begun: Begun, chosen: Sequence[ChosenSet], options: argparse.Namespace) -> Known:
    """The runs of cases that need not be done again.

    Raises UsageError for cases that were changed since, and where nothing is left to do.
    """
    from evaltui.core.model.fingerprints import case_fingerprint
    from evaltui.runs.resuming import finished_repeats

    try:
        finished = finished_repeats(begun.path)
        complete = read_run(begun.path).complete
    except (OSError, ValueError) as error:
        raise UsageError(f"--resume: {error}") from error
    known: Known = {}
    changed: list[str] = []
    missing = 0
    for one in chosen:
        runs = options.runs or one.plan.config.evaltui.repeats.runs
        path = case_path(options.agent_dir, one.path)
        for case in one.plan.cases:
            key = CaseId(path, case.eval_id)
            mine = {number: result for number, result in finished.get(key, {}).items() if number < runs}
            if any(result.expects != case_fingerprint(case) for result in mine.values()):
                changed.append(case.eval_id)
            known[key] = mine
            missing += runs - len(mine)
    if changed:
        raise _refused(begun, f"cases that it had finished were changed since: {_some(changed)}")
    if complete and not missing:
        raise UsageError(f"--resume: run {begun.id} is complete and had no errors, so nothing is left to run")
    return known


def carried(known: Known) -> Iterator[tuple[CaseId, int]]:
    for case, repeats in known.items():
        yield from ((case, number) for number in repeats)


def _refused(begun: Begun, why: str) -> UsageError:
    return UsageError(
        f"--resume: run {begun.id} cannot go on: {why}. Run everything anew, "
        f"and see what changed with --baseline {begun.id}"
    )


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more
