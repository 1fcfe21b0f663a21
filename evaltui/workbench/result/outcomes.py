"""The outcomes of cases: from the last runs, or from an opened earlier run."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from evaltui.core.compare.turn_verdicts import turn_status
from evaltui.core.model.case_id import CaseId
from evaltui.project.eval_set_file import EvalSetFile
from evaltui.runs.run_kind import RunKind
from evaltui.text.keys import key_of
from evaltui.text.outcomes import NOT_RUN, RUNNING
from evaltui.workbench.agent.agent_state import AgentState
from evaltui.workbench.agent.background import Lookups, Progress, return_memory, run_in_thread
from evaltui.workbench.cases.open_sets import OpenSets
from evaltui.workbench.messages import Messages, ResultsChanged
from evaltui.workbench.result.freshness import Freshness, changed_recordings, freshness, has_other_input
from evaltui.workbench.result.results import Results, Verdicts, files_of
from evaltui.workbench.result.stored_results import StoredResult
from evaltui.workbench.state import CaseOutcome, EarlierResult, Run, RunRef
from evaltui.workbench.trace.traces import Trace, Traces

if TYPE_CHECKING:
    from evaltui.core.model.config import EvalConfig
    from evaltui.core.model.events import Event
    from evaltui.core.model.stored_cases import StoredCase
    from evaltui.runs.history import CaseHistory
    from evaltui.runs.listing import RunRow
    from evaltui.workbench.result.earlier_results import AgentNow, PastRun
    from evaltui.workbench.result.rescoring import DraftResult, Rescoring
    from evaltui.workbench.result.set_results import SetResults


# Seconds.
_PAUSE_SECONDS = 0.3
# Results that leave memory to be given back when they have been read.
_MANY_CASES = 1000


class Outcomes:
    """The result and the trace of every case that was run."""

    def __init__(self, agent: AgentState, sets: OpenSets, messages: Messages) -> None:
        self.results = Results()
        """The shown results."""
        self.traces = Traces(self.results.get, messages)
        """The traces of these cases."""
        self.previous_run: PastRun | None = None
        """The opened earlier run; None while the last results are shown."""
        self.base_run: Path | None = None
        """The log or result file of the base run for comparisons, as chosen by the user."""
        self.last_run: RunRow | None = None
        """The newest run of earlier sessions; None for none, and while it is being read."""
        self.is_loading = False
        """Whether results of earlier sessions are still being read."""
        self.rescorings = 0
        """A number that changes whenever other results have to be scored again."""
        self.newly_failing: set[CaseId] = set()
        """Cases that fail in their last run and did not before, until they have been shown."""
        self._before: dict[CaseId, EarlierResult] = {}
        # Whether what the run of a result used is recorded otherwise by now.
        self._changed_recordings: Mapping[tuple[CaseId, str, str], bool] = {}
        self._verdicts: dict[str, Verdicts] = {}
        self._stale = frozenset[CaseId]()
        # By set, with what they are of.
        self._set_results: dict[str, tuple[object, SetResults]] = {}
        self._agent = agent
        self._sets = sets
        self._run: Run | None = None
        self._messages = messages
        # What was shown before a previous run was opened.
        self._latest: tuple[Results, Traces] | None = None
        # Sets that are validated before what was run of them is scored again.
        self._opening: dict[Path, asyncio.Task[None]] = {}
        # Sets whose results are scored again when what is typed is applied.
        self._scored_later: set[Path] = set()
        # Who goes through a list looks at no case for longer than the pause.
        self._histories = Lookups(
            self._read_history, messages, ResultsChanged, at_once=1, pause=_PAUSE_SECONDS
        )

    @cached_property
    def _rescoring(self) -> Rescoring:
        """Scores results again, created late because the first frame does not need it."""
        from evaltui.workbench.result.rescoring import Rescoring

        return Rescoring(self.events_of, self._rescored, lambda: self._agent.secrets)

    @cached_property
    def _draft(self) -> DraftResult:
        """The result of the case that is being edited."""
        from evaltui.workbench.result.rescoring import DraftResult

        return DraftResult(self.events_of, self._messages, lambda: self._agent.secrets)

    # What there is

    @property
    def _is_running(self) -> bool:
        return self._run is not None and not self._run.over

    @property
    def _running(self) -> Collection[CaseId]:
        """The running cases."""
        return self._run.running if self._run is not None and self._is_running else ()

    def get(self, case: CaseId | None) -> CaseOutcome | None:
        """The outcome of a case, scored by its draft where one is open; None for a case that was not run, and
        for None."""
        scored = self.results.get(case) if case else None
        return (self._draft.of(case, scored) or scored) if case and scored else None

    def status(self, case: CaseId) -> str:
        """The status of a case's last result, or running, or not run."""
        return RUNNING if case in self._running else self.last_status(case)

    def counts_of(self, path: str | None = None) -> Counter[str]:
        """The number of cases of a set, or of all, by status of a current or stale result; without the cases
        that are being run again."""
        counts = Counter[str]()
        for set_path in self.results.paths() if path is None else [path]:
            counts.update(self._verdicts_of(set_path).counts)
        return +counts

    def passed(self, path: str) -> int:
        """The number of cases of a set that passed by a current result, flaky ones by their policy."""
        return len(self._verdicts_of(path).passed)

    def counts(self) -> Counter[str]:
        """The number of cases by shown status, including running and not run."""
        counts, listed = self.counts_of(), self._sets.listed
        if self.previous_run is not None:
            return counts
        by_path = {eval_set.case_path: eval_set for eval_set in listed}
        # One that others rename or delete meanwhile has no row any more.
        counts[RUNNING] = sum(
            case.path in by_path and by_path[case.path].number(case.eval_id) is not None
            for case in self._running
        )
        if not self.is_loading:
            # A set that cannot be read shows no cases, and its results are counted.
            unread = sum(
                self.counts_of(eval_set.case_path).total() for eval_set in listed if eval_set.format is None
            )
            counts[NOT_RUN] = sum(len(eval_set.cases) for eval_set in listed) + unread - counts.total()
        return +counts

    def is_waiting(self, case: CaseId) -> bool:
        """Whether the case is still queued in the run."""
        return self._run is not None and self._run.is_waiting(case)

    def last_status(self, case: CaseId) -> str:
        """The status of a case's last result, also while it is running again."""
        scored = self.results.get(case)
        return scored.status if scored else NOT_RUN

    def freshness(self, case: CaseId) -> Freshness | None:
        """The freshness of the result that `get` returns for a case, compared with agent, case or draft, and
        config; None without one."""
        scored = self.get(case)
        return None if scored is None else self._freshness(case, scored)

    def _freshness(self, case: CaseId, scored: CaseOutcome) -> Freshness:
        eval_set, is_draft = self._sets.by_case_path(case.path), scored is self._draft.of(case, scored)
        return freshness(
            scored,
            self._draft.draft if is_draft else self._sets.case_now(case),
            self._sets.config_scoring(case.path),
            self._agent,
            eval_set,
            changed_recordings=self._changed_recordings,
            broken=self._sets.broken(case.path),
            is_rescored=self._draft.is_waiting if is_draft else self.is_rescored(case),
            is_opened=self.previous_run is not None,
        )

    async def compare_files(self) -> None:
        """Checks which files of the agent and which recordings have changed; not during a run, which may
        write them itself."""
        before = self._agent.code_version, self._agent.settings
        if not self._is_running:
            await self._agent.compare_files()
            await self.compare_recordings()
        if (self._agent.code_version, self._agent.settings) != before:
            self._messages.publish(ResultsChanged())

    async def compare_recordings(self) -> None:
        """Checks which recordings have changed; not during a run, which writes them itself."""
        if self._running:
            return
        used = [(case, scored) for case, scored in self.results.all() if scored.recorded]
        sets = {case.path: self._sets.by_case_path(case.path) for case, _ in used}
        changed = await asyncio.to_thread(changed_recordings, used, sets) if used else {}
        if changed != self._changed_recordings:
            self._changed_recordings = changed
            self.rescorings += 1
            self._messages.publish(ResultsChanged())

    def turn_statuses(self, case: CaseId, scored: CaseOutcome | None) -> Sequence[str | None]:
        """The verdicts of a result on the turns that its case has now; none for other turns, while the case
        is running, and where only another run can give them."""
        if scored is None or case in self._running or self._freshness(case, scored).is_stale:
            return ()
        turns = () if self.has_other_input(case, scored) else scored.shown.turns
        return [turn_status(scored.shown, number) for number in range(len(turns))]

    def is_stale(self, case: CaseId) -> bool:
        """Whether only another run can give the current outcome of the case, without its draft."""
        scored = self.results.get(case)
        return scored is not None and self._freshness(case, scored).is_stale

    def stale(self) -> frozenset[CaseId]:
        """The cases with a stale result that counts; the same object until they change."""
        cases = frozenset[CaseId]().union(*(self._verdicts_of(path).stale for path in self.results.paths()))
        if cases != self._stale:
            self._stale = cases
        return self._stale

    def _verdicts_of(self, path: str) -> Verdicts:
        """The verdicts of a set; only cases with another result are checked again while nothing else
        changes."""
        eval_set, agent, results = self._sets.by_case_path(path), self._agent, self.results
        is_later = self._sets.file_of(path) in self._scored_later
        state = (
            eval_set and (eval_set.eval_set_id, eval_set.cases),
            is_later,
            # Another threshold makes none stale that is scored by it later.
            None if is_later else self._sets.config_scoring(path),
            self._sets.broken(path),
            agent.code_version,
            agent.settings,
            agent.settings_problem,
            self.rescorings,
        )
        verdicts = self._verdicts.get(path)
        if verdicts is None or verdicts.results is not results or verdicts.state != state:
            verdicts = self._verdicts[path] = Verdicts(results, path, state)
        verdicts.follow(self.is_stale)
        return verdicts

    def trace(self, case: CaseId) -> Trace | None:
        """The trace of the shown repeat of a case in its last run; live while it runs.

        None for a case that has not been run, and while its log is being read: a message follows then.
        """
        if case in self._running:
            return self.traces.get(case, 0)
        scored = self.results.get(case)
        return self.traces.get(case, scored.repeat) if scored else None

    def events_of(self, case: CaseId) -> Mapping[int, Sequence[Event]] | None:
        """The events of a case by repeat, to score it again; None where they, or the result, are unreadable.
        May take as long as reading a file."""
        scored = self.results.get(case)
        return None if scored is None or scored.problem else self.traces.events_of(case)

    def history(self, case: CaseId) -> CaseHistory | None:
        """The results of a case in earlier runs, up to the opened one; None while they are being read, and a
        message follows."""
        past = self._histories.get(case) if self._sets.by_case_path(case.path) else None
        return past and (past.until(self.previous_run.started) if self.previous_run else past)

    def _read_history(self, case: CaseId) -> CaseHistory:
        """In a thread: the module that reads runs is imported late because the first frame does not need
        it."""
        from evaltui.runs.history import CaseHistory, case_history

        try:
            return case_history(self._agent.store, RunKind.of(self._agent.address), case)
        except OSError:
            return CaseHistory(case, ())

    def results_of_set(self, eval_set: EvalSetFile) -> SetResults:
        """The summary of a set's results."""
        from evaltui.workbench.result.set_results import results_of_set

        verdicts = self._verdicts_of(eval_set.case_path)
        version = verdicts, verdicts.changes
        before, results = self._set_results.get(eval_set.case_path, (None, None))
        if results is None or before != version:
            earlier = self._before if self.previous_run is None else {}
            results = results_of_set(eval_set, self.results.get, earlier.get, verdicts.of_now)
            self._set_results[eval_set.case_path] = version, results
        return results

    @property
    def version(self) -> object:
        """A value that changes whenever a result does."""
        return self.results, self.results.version

    # Changes

    def run_begins(self, run: Run) -> None:
        """Starts a run: its cases have no current result until they end, or the run does."""
        self._run = run
        self.newly_failing.clear()
        self.results.await_run(run.selected)

    def run_ends(self) -> None:
        """Ends a run: cases without a new result keep their old one; results of deleted sets are removed."""
        self.results.await_run(())
        paths = self.results.paths()
        there = [path for path in paths if self._sets.by_case_path(path) is not None]
        if there != paths:
            self.keep_only({case for path in there for case, _ in self.results.of(path)})

    def put(self, case: CaseId, scored: CaseOutcome) -> None:
        """Stores the result of a run for a case; the caller notifies."""
        if (earlier := self.results.get(case)) is not None:
            ran = (earlier.ran if earlier.unscored else None) or (earlier.stored, earlier.config)
            stored, config = (None, None) if earlier.undecided else ran
            self._before[case] = EarlierResult(earlier.status, earlier.run.name, stored, config)
            if earlier.figures.passes and not scored.figures.passes:
                self.newly_failing.add(case)
        self.results.pending.discard(case)
        self.results.put(case, scored)
        if self._sets.is_gone(case):
            # Renamed or deleted while it ran: it has no row, and counts for none.
            self.results.set_aside(case)
        self._score_draft()

    def moved_to(self, case: CaseId, logged: StoredResult) -> None:
        """Notes that the file of another run also has the result of a case."""
        if (scored := self.results.get(case)) is not None:
            ref = logged if scored.ref is scored.logged else scored.ref
            self.results.put(case, replace(scored, ref=ref, logged=logged))

    def show_repeat(self, case: CaseId, repeat: int) -> None:
        """Shows one of the repeats of a case, counted from 0."""
        if (scored := self.results.get(case)) is not None:
            self.results.put(case, replace(scored, chosen=repeat))
            self._score_draft()
            self._messages.publish(ResultsChanged())

    def move(self, moved: Mapping[CaseId, CaseId]) -> None:
        """Renames cases."""
        for results, traces in self._all():
            results.move(moved)
            traces.move(moved)

    def keep_only(self, cases: Collection[CaseId]) -> None:
        """Removes the results of deleted cases. Results for an unreadable file stay."""
        unreadable = [eval_set.case_path for eval_set in self._sets.listed if eval_set.format is None]
        existing = {*cases, *(case for path in unreadable for case, _ in self.results.of(path))}
        for results, traces in self._all():
            results.keep_only(existing)
            traces.keep_only(existing)

    def _all(self) -> Iterator[tuple[Results, Traces]]:
        """The shown results and traces, and the latest ones while an earlier run is shown."""
        yield self.results, self.traces
        if self._latest is not None:
            yield self._latest

    def logs_in_use(self) -> frozenset[Path]:
        """The logs that results are scored again from, and the base."""
        of_cases = frozenset(path for results, _ in self._all() for path in results.files())
        return of_cases if self.base_run is None else of_cases | {self.base_run}

    def runs_changed(self) -> None:
        """Notes that runs were added, removed or renamed."""
        self._histories.outdate()
        self._messages.publish(ResultsChanged())

    # Scoring again

    def rescore(self, paths: Iterable[Path]) -> None:
        """Scores earlier results against the current expectations, in the background."""
        self.rescorings += 1
        concerned = self._sets.scored_by(set(paths))
        self._scored_later -= concerned
        for eval_set in self._sets.listed:
            # Of a set that cannot be read nobody knows what it has.
            if eval_set.path in concerned and eval_set.format is not None:
                for shown, _ in self._all():
                    shown.follow_cases(eval_set.case_path, eval_set.number)
        for path in self.results.paths():
            file = self._sets.file_of(path)
            if file not in concerned:
                continue
            opened = self._sets.opened_already(file)
            if opened is None and file not in self._opening:
                # Its results are shown although it has not been validated.
                self._opening[file] = asyncio.create_task(self._open_to_rescore(file))
            if opened is not None and opened.config is not None:
                self._score(self.results.of(path), opened, opened.config.config)
        self._score_draft()

    def _score(
        self, results: Iterable[tuple[CaseId, CaseOutcome]], opened: EvalSetFile, config: EvalConfig
    ) -> None:
        # Where the agent would get something else, its result stays as it came out, as does that of a run
        # that was opened and is of another case or config.
        again = [
            (case, scored)
            for case, scored in results
            if not self.has_other_input(case, scored)
            and not (scored.unscored and self.previous_run is not None)
        ]
        self._rescoring.score(again, opened, config)

    def score_draft(self, case: CaseId, draft: StoredCase | None) -> None:
        """Scores the last result of a case by its draft, in the background; None for no draft.

        A draft that changes the agent's input is not scored. Only `get` and `freshness` show the result,
        because the case itself has not changed.
        """
        self._draft.case, self._draft.draft = (None, None) if draft is None else (case, draft)
        self._score_draft()

    def _score_draft(self) -> None:
        if "_draft" not in vars(self):
            return
        case, draft = self._draft.case, self._draft.draft
        scored = self.results.get(case) if case else None
        opened = None
        if case and draft and scored and not (scored.unscored and self.previous_run is not None):
            config = self._sets.config_scoring(case.path)
            if not has_other_input(scored, draft, config, self._agent):
                opened = self._sets.opened_already(self._sets.file_of(case.path))
        self._draft.score(scored, opened)

    def rescore_later(self, paths: Iterable[Path]) -> None:
        """Scores results again as `rescore` does, but when `rescore_now` is called."""
        self._scored_later |= self._sets.scored_by(set(paths))

    def rescore_now(self) -> None:
        """Scores the postponed results."""
        if self._scored_later:
            self.rescore([*self._scored_later])
            self._messages.publish(ResultsChanged())

    def has_other_input(self, case: CaseId, scored: CaseOutcome) -> bool:
        """Whether the agent's input for a case differs from that in the run of a result."""
        now, config = self._sets.case_now(case), self._sets.config_scoring(case.path)
        return now is not None and has_other_input(scored, now, config, self._agent)

    async def _open_to_rescore(self, path: Path) -> None:
        results = self.results
        try:
            await asyncio.to_thread(self._sets.open, path)
        finally:
            del self._opening[path]
        if self.results is results:
            self.rescore([path])
        self._messages.publish(ResultsChanged())

    def is_rescored(self, case: CaseId) -> bool:
        """Whether the result of a case is about to be scored again."""
        file = self._sets.file_of(case.path)
        return self._rescoring.is_waiting(case) or file in self._opening or file in self._scored_later

    @property
    def is_scored_later(self) -> bool:
        """Whether results are scored again only when the draft is applied."""
        return bool(self._scored_later)

    async def rescored(self, paths: Iterable[Path]) -> None:
        """Scores the results of these sets again, and waits for the end."""
        self.rescore([*paths, *self._scored_later])
        if self._opening:
            await asyncio.wait(self._opening.values())
        await self._rescoring.finish()
        await self._draft.finish()

    def _rescored(self, outcomes: Sequence[tuple[CaseId, CaseOutcome | None]]) -> None:
        for case, new in outcomes:
            shown = self.results.get(case)
            if new is None:
                self.results.note(case)
            elif shown is not None and shown.run == new.run:
                is_same = new.chosen == shown.chosen
                self.results.put(case, new if is_same else replace(new, chosen=shown.chosen))
        self._messages.publish(ResultsChanged())

    # Previous runs

    async def restore(self) -> None:
        """Shows the last stored result of each case that this session has not run."""
        self.is_loading = True
        try:
            await self._restore()
        finally:
            self.is_loading = False
            self._messages.publish(ResultsChanged())

    async def _restore(self) -> None:
        from evaltui.runs.listing import newest_run
        from evaltui.workbench.result.earlier_results import last_outcomes, names_used

        await asyncio.to_thread(self._sets.read_configs)
        if (workspace := self._sets.workspace) is None:
            return
        stored = last_outcomes(self._sets, workspace, self._agent_now())
        shown, progress, unscored, logs = 0, Progress(), set[str](), set[Path]()
        while (outcomes := await run_in_thread(lambda: next(stored, None), progress)) is not None:
            progress.done += len(outcomes)
            unscored |= {case.path for case, scored in outcomes if scored.unscored}
            if new := files_of(outcomes) - logs:
                # Before a result is shown as current: what changes from then on is noticed.
                self._agent.restored(*await asyncio.to_thread(names_used, new))
            logs |= new
            results, _ = self._latest or (self.results, self.traces)
            results.put_all(
                (case, scored)
                for case, scored in outcomes
                if ((current := results.get(case)) is None or current.gives_way(scored))
                and not (case in self._running or self._sets.is_gone(case))
            )
            # What a hundred thousand came to is not added up and drawn a hundred times.
            if len(results) >= 2 * shown:
                shown = len(results)
                self._messages.publish(ResultsChanged())
        self._messages.publish(ResultsChanged())
        # As while the workbench is open: by what is expected now. Where a previous run was opened meanwhile,
        # the last results are scored again when it is left.
        if self._latest is None:
            self.rescore({self._sets.file_of(path) for path in unscored})
        await self.compare_recordings()
        for eval_set in self._sets.listed:
            # Before somebody looks at it, with keys in between.
            self.results_of_set(eval_set)
            await asyncio.sleep(0)
        kind = RunKind.of(self._agent.address)
        self.last_run = await asyncio.to_thread(newest_run, self._agent.store, kind)
        self._messages.publish(ResultsChanged())
        if len(self.results) >= _MANY_CASES:
            # What was read of logs.
            await asyncio.to_thread(return_memory)

    def _agent_now(self) -> AgentNow:
        from evaltui.workbench.result.earlier_results import AgentNow

        agent, address = self._agent, self._agent.address
        python = None if address.url else address.interpreter
        return AgentNow(agent.store, address, agent.code_version, python)

    def mark_base(self, path: Path) -> None:
        """Makes a run the base; removes the base where it is that run."""
        self.base_run = None if self.base_run == path else path
        self._messages.publish(ResultsChanged())

    def refuses_to_open(self) -> str | None:
        """Why no earlier run can be shown now, as a sentence."""
        return f"Run in progress ({key_of('cancel_run')} cancels)" if self._is_running else None

    async def open_run(self, path: Path, title: str) -> bool:
        """Shows the results of an earlier run; False where it is unreadable."""
        from evaltui.workbench.result.earlier_results import open_past_run

        sets, workspace = self._sets, self._sets.workspace
        if workspace is None:
            return False
        run, agent, progress = RunRef(log=path, title=title), self._agent_now(), Progress()
        try:
            past = await run_in_thread(
                lambda: open_past_run(run, path, sets, workspace, agent, self._messages, progress), progress
            )
        except (OSError, ValueError) as error:
            self._messages.say(str(error))
            return False
        if reason := self.refuses_to_open():
            self._messages.say(reason)
            return False
        past.results.keep_only({case for case, _ in past.results.all() if not sets.is_gone(case)})
        self._rescoring.stop()
        self._latest = self._latest or (self.results, self.traces)
        self.previous_run, self.results, self.traces = past, past.results, past.traces
        self._score_draft()
        self._messages.say(past.missing)
        self._messages.publish(ResultsChanged())
        return True

    def leave_previous_run(self) -> None:
        """Shows the last results again."""
        if self._latest is None:
            return
        self._rescoring.stop()
        self.results, self.traces = self._latest
        self.previous_run = self._latest = None
        # What is expected may have been changed meanwhile.
        self.rescore(map(self._sets.file_of, self.results.paths()))
        self._messages.publish(ResultsChanged())

    async def close(self) -> None:
        """Cancels the background reading."""
        for opening in list(self._opening.values()):
            opening.cancel()
        await self._histories.close()
