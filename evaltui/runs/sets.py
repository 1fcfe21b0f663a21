"""The eval sets of a run: reading them, and notes about them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from evaltui.core.model.problems import EvalSetError, Problem, errors_in
from evaltui.core.model.stored_cases import StoredCases
from evaltui.documents.saving import fingerprint_of
from evaltui.project.config_references import reference_problems
from evaltui.project.configs import ConfigInUse, config_file, find_config
from evaltui.project.eval_set_file import read_eval_set_file, validated
from evaltui.project.eval_sets import InitialSession, read_eval_set
from evaltui.project.folders import case_path, file_of
from evaltui.project.run_settings import ConfigChoice
from evaltui.project.workspace import open_workspace, select
from evaltui.runner.plan import SetPlan
from evaltui.text.figures import counted

# Of one file in a report.
_MAX_NOTES = 5


def read_set(
    agent_dir: Path, path: Path, config: ConfigInUse, initial_session: InitialSession = None
) -> SetPlan:
    """The plan for all cases of a set; `initial_session` is for sets of the old format. Raises
    EvalSetError."""
    named = case_path(agent_dir, path)
    files = {file: fingerprint_of(file) for file in _files_of(path, config, initial_session)}
    if initial_session is not None:
        # For old formats, whose sets are small.
        read = read_eval_set(path, initial_session)
        if (eval_set := read.eval_set) is None:
            raise EvalSetError(errors_in(read.problems))
        plan = SetPlan(named, eval_set.eval_set_id, tuple(eval_set.eval_cases), config, path, whole=True)
        return replace(plan, files=files, problems=read.problems)
    file = validated(read_eval_set_file(path, "", path.parent)).scored_by(config)
    if file.eval_set is None or file.errors:
        raise EvalSetError(file.errors)
    cases = StoredCases(case.to_run() for case in file.cases)
    return SetPlan(
        named,
        file.eval_set.eval_set_id,
        cases,
        config,
        path,
        whole=True,
        fingerprint=file.fingerprint,
        files=files,
        problems=file.problems,
    )


def _files_of(path: Path, config: ConfigInUse, initial_session: InitialSession) -> Iterator[Path]:
    """The files that affect the verdicts of a set, including a missing config that may be created."""
    yield path
    if config.path is not None:
        yield config.path
    elif not (beside := config_file(path)).exists():
        yield beside
    if isinstance(initial_session, str | Path):
        yield Path(initial_session)


def warnings_of(sets: Sequence[SetPlan]) -> list[str]:
    """The warnings about sets and their configs, as sentences. Raises EvalSetError for errors."""
    by_config: dict[Path | None, list[SetPlan]] = {}
    problems: list[Problem] = []
    for plan in sets:
        in_use = plan.config_in_use
        problems += [problem for problem in plan.problems if problem not in in_use.problems]
        if in_use.defaulted:
            problems += in_use.problems
        else:
            by_config.setdefault(in_use.path, []).append(plan)
    for config, scored in by_config.items():
        in_use = scored[0].config_in_use
        # All cases of a set, those that are not to be run included.
        read = {
            plan.path or plan.case_path: (plan.eval_set_id, [*plan.stored_cases, *plan.others])
            for plan in scored
        }
        problems += [*in_use.problems, *reference_problems(config, in_use.config.evaltui, read)]
    if errors := errors_in(problems):
        raise EvalSetError(errors)
    by_file: dict[str | None, list[Problem]] = {}
    for problem in problems:
        by_file.setdefault(problem.file, []).append(problem)
    return [note for file, problems in by_file.items() for note in _notes(file, problems)]


def _notes(file: str | None, problems: Sequence[Problem]) -> Iterator[str]:
    yield from (problem.located() for problem in problems[:_MAX_NOTES])
    if (more := len(problems) - _MAX_NOTES) > 0:
        yield f"{file}: {counted(more, 'more problem')}; `evaltui lint` lists them"


class SetSource(Protocol):
    """A source of sets for a run: files, or the open sets of the workbench."""

    @property
    def config(self) -> Path | None:
        """The config for all sets; None where each has its own."""
        ...

    @property
    def initial_session(self) -> Path | None:
        """A file with the session that starts sets of the old format."""
        ...

    def open(self, path: Path) -> SetPlan:
        """The plan for all cases of a set. Raises EvalSetError for errors in the set or its config."""
        ...

    def find(self, case_path: str, eval_set_id: str) -> Path | None:
        """The file of a set by its path in `CaseId` and its id, as in a run log; None for a missing set."""
        ...


class FileSets:
    """Sets as they are in files.

    `config` is a config for all of them; without it, `choice` finds the config of each. `initial_session` is
    for sets of the old format.
    """

    def __init__(
        self,
        agent_dir: Path,
        config: Path | None = None,
        initial_session: Path | None = None,
        choice: ConfigChoice = "nearest",
    ) -> None:
        """Reads the config. Raises EvalSetError where it is unreadable."""
        self.config = config
        self.initial_session = initial_session
        self._agent_dir = agent_dir
        self._choice: ConfigChoice = choice
        self._config = find_config(agent_dir, config) if config else None
        self._open: dict[Path, SetPlan] = {}

    def open(self, path: Path) -> SetPlan:
        """The plan for all cases of a set; each file is read once."""
        if path not in self._open:
            config = self._config or find_config(path, choice=self._choice)
            self._open[path] = read_set(self._agent_dir, path, config, self.initial_session)
        return self._open[path]

    def find(self, case_path: str, eval_set_id: str) -> Path | None:
        """The file of a set. Raises SelectionError for a set that is known by id only and is missing."""
        path = file_of(self._agent_dir, case_path)
        if path.is_file():
            return path
        # Logs of earlier versions may know the id only.
        by_id = select(open_workspace(self._agent_dir), [eval_set_id]) if case_path == eval_set_id else []
        return by_id[0][0].path if by_id else None
