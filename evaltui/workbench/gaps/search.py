"""The search for gaps of eval sets: it runs in a thread, and is shown while it runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from evaltui.core.gaps.cells import Cell, call_reaching
from evaltui.core.gaps.coverage import CellCoverage, Coverage
from evaltui.core.gaps.drafts import Conversation
from evaltui.core.gaps.gaps import Gap, GapReport
from evaltui.core.gaps.mutants import Mutant, RecordedCase
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.content import FunctionCall
from evaltui.core.model.problems import EvalSetError
from evaltui.core.model.tool_schema import DeclaredTool
from evaltui.runner.plan import SetPlan
from evaltui.runs.gaps import MAX_RUNS, GapsOfRuns, cases_in_runs, last_runs
from evaltui.runs.run_kind import RunKind
from evaltui.text.figures import counted, short_list
from evaltui.text.keys import key_of
from evaltui.views.gaps import cell_name
from evaltui.workbench.agent.agent_state import AgentState
from evaltui.workbench.agent.background import Progress, run_in_thread
from evaltui.workbench.cases.navigation import Navigation
from evaltui.workbench.cases.open_sets import OpenSets
from evaltui.workbench.messages import FilesChanged, GapsFound, Messages, ResultsChanged, RunProgressed
from evaltui.workbench.runs.compared_runs import StateChanges, TurnOfBoth, state_changes, turn_of_both
from evaltui.workbench.runs.running import EditedSets

# Seconds between two reports of a search that goes on; the first comes sooner.
_PUBLISH_SECONDS = 0.5
_FIRST_SECONDS = 0.1


@dataclass(frozen=True)
class ChangedConversation:
    """A gap with the recorded conversation and the change of it."""

    gap: Gap
    recorded: RecordedCase
    mutant: Mutant

    @property
    def turn(self) -> TurnOfBoth | None:
        """The changed turn beside the recorded one; None for a change of the final state."""
        number = self.mutant.turn
        if number is None:
            return None
        turns = self.recorded.turns[number], self.mutant.turns[number]
        return turn_of_both(*turns, thoughts=self.recorded.expected.score_thoughts)

    @property
    def state(self) -> StateChanges:
        """The changes of the final state."""
        return state_changes(self.recorded.final_state or {}, self.mutant.final_state or {})


class Gaps:
    """The gaps of eval sets with their unsaved edits, by their last results.

    `runs_now` is a value that changes when a run starts or ends; None while one is in progress.
    """

    def __init__(
        self,
        agent: AgentState,
        sets: OpenSets,
        navigation: Navigation,
        runs_now: Callable[[], object],
        messages: Messages,
    ) -> None:
        self.paths: tuple[Path, ...] = ()
        """The searched sets."""
        self.report: GapReport | None = None
        """The gaps that were found so far; None before the first ones, and without any result."""
        self.progress = Progress()
        """The searched cases of the search that goes on, or of the last one."""
        self.seconds: float | None = None
        """Duration of the last search; None while it goes on."""
        self.problem = ""
        """Why there is no report, as a sentence with a remedy; "" for none."""
        self.stale = ""
        """The change after which the report is stale, as a clause; "" for none."""
        self.agent_changes = ""
        """The changes of the agent since its runs, as a clause; "" for none."""
        self._agent = agent
        self._sets = sets
        self._navigation = navigation
        self._runs_now = runs_now
        self._messages = messages
        self._versions: tuple[object, ...] = ()
        self._runs: object = None
        self._code = 0
        self._searched: GapsOfRuns | None = None
        self._task: asyncio.Task[None] | None = None
        messages.subscribe(self._compare, FilesChanged, ResultsChanged, RunProgressed)

    @property
    def is_running(self) -> bool:
        """Whether a search goes on."""
        return self._task is not None and not self._task.done()

    @property
    def runs(self) -> Sequence[str]:
        """The names of the runs whose results were changed."""
        return self._searched.cases.runs if self._searched else ()

    def search(self, paths: Sequence[Path] = ()) -> None:
        """Searches sets, or the same ones again; a search that goes on is cancelled."""
        if self._task is not None:
            self._task.cancel()
        if paths and (*paths,) != self.paths:
            self.paths, self.report = (*paths,), None
        self.progress, self.seconds, self.problem, self.stale = Progress(), None, "", ""
        self._versions, self._runs = self._versions_now(), self._runs_now()
        self.agent_changes, self._code = "", self._agent.code_version
        self._task = asyncio.create_task(self._search(self.progress))
        self._messages.publish(GapsFound())

    async def _search(self, progress: Progress) -> None:
        began = time.monotonic()
        loop = asyncio.get_running_loop()

        def show(report: GapReport) -> None:
            if self.progress is progress:
                self.report = report
                self._messages.publish(GapsFound())

        try:
            report = await run_in_thread(
                lambda: self._find(progress, lambda report: loop.call_soon_threadsafe(show, report)), progress
            )
        except EvalSetError as error:
            self.problem = error.problems[0].beside(self._agent.dir)
        except (OSError, ValueError) as error:
            self.problem = str(error)
        except Exception as error:  # such as of a metric of the user's own
            self.problem = f"{type(error).__name__}: {error}"
        else:
            self.report, self.seconds = report, time.monotonic() - began
            if report is None:
                self.problem = self._without_run()
            elif self._searched is not None:
                self._navigation.reaching = partial(_cases_with, self._searched.coverage)
        if self.problem:
            self.report = None
        self._task = None
        self._messages.publish(GapsFound())

    def _find(self, progress: Progress, show: Callable[[GapReport], object]) -> GapReport | None:
        """In a thread: searches the sets; None where no run has any of their cases. Raises OSError,
        ValueError, EvalSetError."""
        sets, agent = EditedSets(self._sets), self._agent
        selections = [(self._sets.open(path), None) for path in self.paths]
        cases = cases_in_runs(agent.address, agent.store, selections, sets=sets)
        if not cases.in_runs:
            return None
        searched, changes = GapsOfRuns(agent.dir, cases), cases.changed_since(agent.dir)
        if not progress.cancelled:
            self._searched, self.agent_changes = searched, changes
        progress.total = sum(len(item.plan.cases) for item in cases.in_runs)
        due = time.monotonic() + _FIRST_SECONDS

        def after_case() -> None:
            nonlocal due
            progress.step()
            if time.monotonic() >= due:
                show(searched.report())
                due = time.monotonic() + _PUBLISH_SECONDS

        return asyncio.run(searched.find(after_case))

    def _without_run(self) -> str:
        names = short_list([path.name for path in self.paths])
        runs = f"no result in the last {counted(MAX_RUNS, 'run')}" if self._agent.store.files() else "not run"
        return f"{names}: {runs}   {key_of('run')}  Run"

    def _compare(self, message: object) -> None:
        """Notes what has changed since the search began."""
        if not self.paths or self.stale:
            return
        if isinstance(message, FilesChanged):
            pairs = zip(self.paths, self._versions_now(), self._versions, strict=True)
            names = [path.name for path, now, before in pairs if now != before]
            self.stale = f"{short_list(names)} or its config changed" if names else ""
        elif (runs := self._runs_now()) is not None and runs != self._runs:
            self.stale = "another run has finished"
        if not self.stale and (changed := self._agent.files_changed_since(self._code)):
            self.stale = f"{short_list(changed)} changed"
        if self.stale and self.problem:
            self.search()
        elif self.stale:
            self._messages.publish(GapsFound())

    def _versions_now(self) -> tuple[object, ...]:
        return tuple(self._sets.versions(path) for path in self.paths)

    def cancel(self) -> None:
        """Ends a search that goes on, and drops its gaps, or its problem."""
        if self._task is not None:
            self._task.cancel()
        if self._task is not None or self.problem:
            self._task, self.paths, self.report, self.problem = None, (), None, ""

    # Gaps and cells

    def changed(self, gap: Gap, *, now: bool = False) -> ChangedConversation | None:
        """In a thread: the change of a gap, made again; None where the run lacks the conversation by now.

        With `now`, by the case and config as they are now, not as they were searched. Raises OSError,
        ValueError, EvalSetError.
        """
        if self._searched is None:
            return None
        both = self._searched.changed(gap, self._plan_of(gap) if now else None)
        return ChangedConversation(gap, *both) if both else None

    def passing(self, gap: Gap) -> Iterator[Conversation]:
        """In a thread: the other results of the case of a gap in the last runs that may pass. Raises as
        `changed`."""
        if self._searched is not None:
            files = last_runs(self._agent.store, RunKind.of(self._agent.address))
            yield from self._searched.passing(gap, files, self._plan_of(gap))

    def _plan_of(self, gap: Gap) -> SetPlan:
        return EditedSets(self._sets).open(self._sets.file_of(gap.path))

    async def search_case(self, gap: Gap) -> None:
        """Searches the case of a gap again, after a check was added to it. Raises OSError, ValueError,
        EvalSetError."""
        searched, progress = self._searched, self.progress
        if searched is None:
            return
        work = partial(searched.of_case, gap)
        again = await run_in_thread(lambda: asyncio.run(work(self._plan_of(gap))), Progress())
        if self.report is not None and self.progress is progress:
            self.report = self.report.with_case(gap.case, again)
            self._versions, self.stale = self._versions_now(), ""
            self._messages.publish(GapsFound())

    def follow_mark(self, name: str, gap: Gap, stale: str) -> None:
        """Counts a change of a kind as meant so, or as a gap again, in place of a new search.

        `stale` is why the report was stale before.
        """
        if self.report is None:
            return
        for kind in self.report.kinds:
            if kind.kind == name and gap in (*kind.gaps, *kind.meant_so):
                is_gap = gap in kind.gaps
                source, target = (kind.gaps, kind.meant_so)[:: 1 if is_gap else -1]
                # Several changes may have one content, such as a drop of either of two equal calls.
                marked = [item for item in source if item == gap]
                source[:] = [item for item in source if item != gap]
                target += marked
                kind.changes += -len(marked) if is_gap else len(marked)
        self.report = self.report.counted()
        self._versions, self.stale = self._versions_now(), stale
        self._messages.publish(GapsFound())

    def call_reaching(self, cell: CellCoverage) -> FunctionCall | None:
        """A call that reaches a cell; None where no call does."""
        if self._searched is None:
            return None
        return call_reaching(Cell(cell.kind, cell.name), self._searched.coverage.tools)

    def declaration(self, tool: str) -> DeclaredTool | None:
        """A tool as the agent of the runs declares it."""
        return self._searched.coverage.tools.get(tool) if self._searched else None

    def show_cases(self, cell: Cell) -> None:
        """Filters the list of cases to those that reach a cell."""
        self._navigation.set_filter(f'reaches:"{_typed(cell)}"')

    async def close(self) -> None:
        """Ends the search."""
        self._messages.unsubscribe(self._compare)
        task = self._task
        self.cancel()
        if task is not None:
            await asyncio.wait([task])


def _typed(cell: Cell) -> str:
    """A cell as it is typed in the filter, where a quote ends a text."""
    return cell_name(*cell).replace('"', "")


def _cases_with(coverage: Coverage, search: Callable[[str], object]) -> set[CaseId]:
    """The cases in whose results there is a cell with a matching name."""
    cells = [cell for cell in coverage.reached if search(_typed(cell).casefold())]
    return {case for cell in cells for case in coverage.reaching(cell)}
