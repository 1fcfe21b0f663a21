"""Eval sets as test files, eval cases as tests."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

import pytest

from evaltui.core.compare.explain import sentence
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import CaseResult, Status
from evaltui.core.model.stored_cases import StoredCase
from evaltui.project.agents import is_agent
from evaltui.project.eval_set_file import EvalSetFile, read_eval_set_file
from evaltui.project.folders import agent_folder, json_files, json_files_below
from evaltui.project.workspace import (
    is_set,
    keeps_sets,
    lost_folders_of_sets,
    open_workspace,
    skipped_hint,
    skipped_in,
    with_tags,
)
from evaltui.reports.details import MAX_WIDTH, case_details
from evaltui.testing.agent_run import FinishedCase
from evaltui.testing.case_runs import CaseRuns, CaseToTest, NoAgentError
from evaltui.testing.options import marker_of
from evaltui.text.figures import counted, short_list
from evaltui.text.lines import Line, draw
from evaltui.text.values import visible


class _ResultError(Exception):
    """A case did not pass."""

    def __init__(self, result: CaseResult) -> None:
        super().__init__(sentence(result))
        self.result = result


class CaseFailedError(_ResultError):
    """The agent did something else than the case expects."""


class CaseUndecidedError(_ResultError):
    """It is not known whether a case passes: the agent failed, or a metric could not be computed."""


class _Writer(Protocol):
    """The part of pytest's terminal writer that is used here."""

    hasmarkup: bool

    def line(self, s: str = "") -> None: ...


@dataclass(frozen=True)
class Place:
    """Where pytest, and whoever reads its reports, says that a test failed."""

    path: str
    lineno: int
    """From 1."""
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.lineno}: {self.message}"


@dataclass(frozen=True)
class FailureLines:
    """The lines that `evaltui run` prints of the case, in the form that pytest takes as a failure."""

    lines: tuple[Line, ...]
    reprcrash: Place

    @classmethod
    def of(cls, result: CaseResult, path: Path, line: int) -> FailureLines:
        """The lines for a case that begins on a line of a file, from 1."""
        return cls(_case_lines(result), Place(str(path), line, sentence(result)))

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> FailureLines:
        """The lines that a worker of pytest-xdist has sent."""
        lines = tuple([(text, role) for text, role in line] for line in data["lines"])
        return cls(lines, Place(data["path"], data["lineno"], data["message"]))

    def to_json(self) -> dict[str, Any]:
        place = self.reprcrash
        lines = [[list(span) for span in line] for line in self.lines]
        return {"lines": lines, "path": place.path, "lineno": place.lineno, "message": place.message}

    def toterminal(self, tw: _Writer) -> None:
        for line in self.lines:
            tw.line(draw(line, color=tw.hasmarkup))
        tw.line("")
        tw.line(f"{self.reprcrash.path}:{self.reprcrash.lineno}")

    def __str__(self) -> str:
        return "\n".join(draw(line, color=False) for line in self.lines)


def details(result: CaseResult) -> str:
    """The lines that `evaltui run` prints of a case, as text."""
    return "\n".join(draw(line, color=False) for line in _case_lines(result))


def _case_lines(result: CaseResult) -> tuple[Line, ...]:
    return tuple(case_details(result, min(shutil.get_terminal_size().columns, MAX_WIDTH)))


class FlakyWarning(pytest.PytestWarning):
    """A case passed by its policy, but not in each of its runs."""


def name_skipped(path: Path, runs: CaseRuns) -> None:
    """Notes a file that might be expected among the eval sets, and is none."""
    skipped = skipped_in([path])
    hints = [f"{file.path}: {file.reason}" for file in skipped if not file.is_set]
    runs.remarks += filter(None, [*hints, skipped_hint(skipped)])


def name_sets_elsewhere(folder: Path, session: pytest.Session, runs: CaseRuns) -> None:
    """Notes the eval sets of an agent's folder that are in none of the folders named for pytest."""
    if not is_agent(folder):
        return
    others = [
        eval_set.path
        for eval_set in open_workspace(folder).sets
        if not any(session.isinitpath(path) for path in (eval_set.path, *eval_set.path.parents))
    ]
    if others:
        names = short_list([os.path.relpath(path, session.config.invocation_params.dir) for path in others])
        runs.remarks.append(
            f"{counted(len(others), 'eval set')} of {folder.name} not collected; name: {names}"
        )


def is_folder_of_sets(folder: Path, root: Path) -> bool:
    """Whether there are eval sets in or below a folder where they are kept."""
    return keeps_sets(folder, root) and any(map(is_set, json_files_below([folder])))


def not_collected(folder: Path, root: Path) -> list[str]:
    """The eval sets of a folder that cannot be collected, each with the reason: those that are no files, and
    those that a run refuses to leave out."""
    is_of_sets = keeps_sets(folder, root)
    files = [*json_files(folder, keeps_sets=is_of_sets), *lost_folders_of_sets(folder)]
    unreachable = [
        problem.located()
        for file in files
        if not os.path.isfile(file) and is_set(file)  # noqa: PTH113
        for problem in read_eval_set_file(file, "", folder).errors
    ]
    hint = skipped_hint(skipped_in(files)) if is_of_sets else ""
    return [*unreachable, *([f"{hint}, or name the eval sets to run"] if hint else [])]


class EvalSetNode(pytest.File):
    """A file with an eval set."""

    runs: CaseRuns

    def __init__(self, *, runs: CaseRuns, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.runs = runs
        self.add_marker(pytest.mark.evaltui)

    def collect(self) -> Iterator[EvalCaseItem]:
        """Raises CollectError for a file that is no eval set, and where no agent is found for it."""
        try:
            agent_dir = self.runs.agent_of(self.path)
        except NoAgentError as error:
            raise self.CollectError(str(error)) from error
        file = read_eval_set_file(self.path, "given", agent_folder(agent_dir))
        if file.errors:
            raise self.CollectError("\n".join(problem.located() for problem in file.errors))
        [file] = with_tags([file], self.runs.config_file)
        lines = file.document.lines_of_cases if file.document else [1] * len(file.cases)
        for case, line in zip(file.cases, lines, strict=True):
            yield EvalCaseItem.of(self, agent_dir, file, case, line)


class EvalCaseItem(pytest.Item):
    """An eval case."""

    runs: CaseRuns
    case: CaseToTest
    line: int
    """Where it begins in its file, from 1."""
    finished: FinishedCase | None = None
    """None before it was run."""

    @classmethod
    def of(
        cls, node: EvalSetNode, agent_dir: Path, file: EvalSetFile, case: StoredCase, line: int
    ) -> EvalCaseItem:
        """The test of a case that stands on a line of its file."""
        # pytest takes an id apart at its colons.
        item: EvalCaseItem = cls.from_parent(node, name=visible(case.eval_id.replace("::", "·")))
        item.runs, item.line = node.runs, line
        item.case = CaseToTest(CaseId(file.case_path, case.eval_id), node.path, agent_dir, len(file.cases))
        item.extra_keyword_matches.update(
            (file.eval_set_id, *case.outline.tools, *case.outline.first_text.split())
        )
        item.user_properties.append(("eval_id", case.eval_id))
        for tag in (file.tags or {}).get(case.eval_id, ()):
            item.user_properties.append(("tag", tag))
            item.extra_keyword_matches.add(tag)
            if (marker := marker_of(node.config, tag)) is not None:
                item.add_marker(marker)
        return item

    def listchain(self) -> list[Any]:
        """The nodes above it without packages, whose `__init__` pytest would import, and with it an agent."""
        return [node for node in super().listchain() if not isinstance(node, pytest.Package)]

    def setup(self) -> None:
        """Wait for the result. Raises CaseUndecidedError for what pytest calls an error."""
        self.finished = finished = self.runs.result(self.case, self.session)
        result = finished.result
        self.user_properties += [
            (metric.name, f"{metric.score:g}") for metric in result.metrics if metric.score is not None
        ]
        if finished.printed:
            self.add_report_section("setup", "agent output", self.runs.printed(self.case, finished))
        if finished.excuse:
            return
        if (
            result.verdict is Status.NOT_EVALUATED
            and self.runs.skips_not_evaluated
            and not result.is_undecided
        ):
            pytest.skip(self.runs.sentence(self.case, finished))
        if result.verdict not in (Status.PASSED, Status.FAILED):
            raise CaseUndecidedError(result)
        if result.status is Status.FLAKY and result.verdict is Status.PASSED:
            repeats = counted(len(result.repeats), "repeat")
            self.warn(FlakyWarning(f"flaky: {result.passed_repeats} of {repeats} passed"))

    def runtest(self) -> None:
        """Raises CaseFailedError for a case that failed."""
        assert self.finished is not None
        if self.finished.excuse:
            pytest.xfail(f"{self.finished.excuse}: {self.runs.sentence(self.case, self.finished)}")
        if self.finished.result.verdict is Status.FAILED:
            raise CaseFailedError(self.finished.result)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        error = excinfo.value
        if isinstance(error, _ResultError):
            return FailureLines.of(self.runs.masked(self.case, error.result), self.path, self.line)
        if (text := self.runs.problem(error)) is not None:
            return text
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[PathLike[str] | str, int | None, str]:
        return self.path, self.line - 1, self.name
