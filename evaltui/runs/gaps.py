"""Gaps of eval sets by stored runs: which run has a set, and what its passing cases do not notice."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from evaltui.core.compare.explain import crash_text
from evaltui.core.conversation.invocations import invocations_from_events
from evaltui.core.gaps.coverage import Coverage
from evaltui.core.gaps.drafts import Conversation
from evaltui.core.gaps.gaps import NO_RESULT, Gap, GapReport, GapSearch
from evaltui.core.gaps.mutants import Mutant, RecordedCase, is_decided_again
from evaltui.core.model.case_id import CaseId, case_fingerprint, expected_calls
from evaltui.core.model.eval_set import EvalCase, Invocation
from evaltui.core.model.json_values import ABSENT, equal
from evaltui.core.model.modes import modes_of
from evaltui.core.model.outcome import RepeatResult, Status
from evaltui.core.model.problems import EvalSetError, SelectionError
from evaltui.core.model.tool_schema import DeclaredTool, declared_tools
from evaltui.core.recordings.given import agent_input_fingerprint
from evaltui.core.scoring import Expected, reads_app_details
from evaltui.project.agent_address import AgentAddress
from evaltui.project.agent_files import FilesNow
from evaltui.project.settings import secrets_of
from evaltui.project.workspace import Selection
from evaltui.runner.plan import SetPlan
from evaltui.runs.history import find_run
from evaltui.runs.resuming import files_changed_since
from evaltui.runs.run_file import CaseInRun, RunFile
from evaltui.runs.run_kind import RunKind
from evaltui.runs.sets import FileSets, SetSource
from evaltui.runs.store import RunStore, is_adk_result
from evaltui.text.figures import short_list

NOT_DECLARED = "tools not declared: coverage has those that were called or expected"
_ADK_FRAMEWORKS = ("adk", "adk_api")
MAX_RUNS = 20
"""Runs of the agent that are searched for results."""


@dataclass(frozen=True, eq=False)
class CasesInRun:
    """Cases of an eval set of now beside the run that has their results."""

    file: RunFile
    plan: SetPlan
    """The set with these cases only."""

    @cached_property
    def run(self) -> str:
        """`run 12`"""
        return f"run {self.file.number or self.file.id}"

    @cached_property
    def tools(self) -> Sequence[DeclaredTool]:
        """The tools that the agent declares."""
        return declared_tools(self.file.agent)

    @cached_property
    def agents(self) -> list[str]:
        """The agent by its name, and those below it; where transfers are no calls, without those that are
        tools."""
        agent = self.file.agent
        tools = set() if self.calls_transfers else {tool.name for tool in self.tools}
        names = (agent.get("name"), *(agent.get("sub_agents") or ()))
        return [str(name) for name in names if name and name not in tools]

    @property
    def calls_transfers(self) -> bool:
        """Whether a transfer to another agent is a call, as in google-adk."""
        return self.file.agent.get("framework") in _ADK_FRAMEWORKS


@dataclass(frozen=True)
class CasesInRuns:
    """The selected cases with the runs that have their results."""

    in_runs: Sequence[CasesInRun]
    without_run: Sequence[tuple[CaseId, str]]
    """Cases without a result, each with the id of its set."""

    @property
    def runs(self) -> list[str]:
        """The names of the runs, each once."""
        return list(dict.fromkeys(item.run for item in self.in_runs))

    def changed_since(self, agent_dir: Path) -> str:
        """The files of the agent that changed since its runs, as a clause; "" for none. Raises what `RunFile`
        raises."""
        agent, now = AgentAddress(agent_dir), FilesNow(agent_dir)
        files = {item.run: item.file for item in self.in_runs if item.file.header.files}
        changed = {run: files_changed_since(file, agent, now) for run, file in files.items()}
        return "; ".join(
            f"{short_list(names)} changed after {run}" for run, names in changed.items() if names
        )


def last_runs(store: RunStore, agent: RunKind) -> Iterator[Path]:
    """The last runs of an agent, and of traces, the newest first. Raises what `RunFile` raises."""
    runs = (path for path in reversed(store.files()) if RunFile(path).header.is_of(agent))
    yield from islice(runs, MAX_RUNS)


def cases_in_runs(
    agent: AgentAddress,
    store: RunStore,
    selections: Iterable[Selection],
    ref: str = "",
    sets: SetSource | None = None,
) -> CasesInRuns:
    """The selected cases in the run `ref`, which may be of any agent; without one each in the newest of the
    agent's last runs that has it.

    `sets` has them as they are now; without it they are read from files, by the settings of their run. Raises
    SelectionError for an unknown run, OSError, EvalSetError, and ValueError for a run that cannot be read.
    """
    selections = list(selections)
    if errors := [error for eval_set, _ in selections if not eval_set.cases for error in eval_set.errors]:
        # Of these no case is known that could be told to have no result.
        raise EvalSetError(errors)
    named = find_run(store, ref) if ref else None
    if named is not None and is_adk_result(named):
        raise SelectionError(f"{named}: ADK result files are not enough; name a run of evaltui")
    files = {eval_set.case_path: eval_set for eval_set, _ in selections}
    remaining = {
        eval_set.case_path: [case.eval_id for case in eval_set.cases] if eval_ids is None else [*eval_ids]
        for eval_set, eval_ids in selections
    }
    sources: dict[object, SetSource] = {}
    in_runs: list[CasesInRun] = []
    for path in [named] if named else last_runs(store, RunKind.of(agent)):
        if not any(remaining.values()):
            break
        file = RunFile(path)
        header = file.header
        key = header.config, header.initial_session, header.settings.config_choice
        done = file.numbers
        for item in header.sets:
            case_path = item.path
            eval_ids = [
                eval_id for eval_id in remaining.get(case_path, ()) if CaseId(case_path, eval_id) in done
            ]
            if not eval_ids:
                continue
            if sets is not None:
                sources[key] = sets
            elif key not in sources:
                config, session = (Path(text) if text else None for text in key[:2])
                sources[key] = FileSets(agent.folder, config, session, header.settings.config_choice)
            plan = sources[key].open(files[case_path].path)
            in_runs.append(CasesInRun(file, plan.only(eval_ids)))
            selected = {*eval_ids}
            remaining[case_path] = [eval_id for eval_id in remaining[case_path] if eval_id not in selected]
    without = [
        (CaseId(path, eval_id), files[path].eval_set_id)
        for path, eval_ids in remaining.items()
        for eval_id in eval_ids
    ]
    return CasesInRuns(in_runs, without)


class GapsOfRuns:
    """The gaps of cases by the runs that have them: they are searched case by case, and each gives its change
    back."""

    def __init__(self, agent_dir: Path, cases: CasesInRuns) -> None:
        """Reads what the agent of the runs declares. Raises what `RunFile` raises."""
        self.cases = cases
        self._secrets = secrets_of(agent_dir)
        # Of some case of each item.
        self._expected: dict[CasesInRun, Expected] = {}
        declared = {tool.name: tool for item in cases.in_runs for tool in item.tools}
        self._agents = tuple(dict.fromkeys(agent for item in cases.in_runs for agent in item.agents))
        called = dict.fromkeys(name for item in cases.in_runs for name in _expected_tools(item.plan))
        self.coverage = Coverage({name: DeclaredTool(name) for name in called} | declared)
        transfers = dict.fromkeys(
            agent for item in cases.in_runs if item.calls_transfers for agent in item.agents[1:]
        )
        self.coverage.declare(declared.values(), self._agents, transfers)
        self.search = GapSearch(self.coverage)

    async def find(self, after_case: Callable[[], object] = lambda: None) -> GapReport:
        """Searches all cases; `after_case` is called after each. Raises what `RunFile` raises."""
        for item in self.cases.in_runs:
            for case in item.plan.cases:
                await self._add(item, case)
                after_case()
            if not item.tools and any(cell.kind == "tool" for cell in self.coverage.reached):
                set_id = CaseId(item.plan.case_path, "")
                self.search.skip(set_id, item.plan.eval_set_id, NOT_DECLARED)
        for case_id, eval_set_id in self.cases.without_run:
            self.search.skip(case_id, eval_set_id, NO_RESULT)
        return self.report()

    def report(self) -> GapReport:
        """The report on the cases that were searched so far."""
        return self.search.report()

    def changed(self, gap: Gap, plan: SetPlan | None = None) -> tuple[RecordedCase, Mutant] | None:
        """The recorded conversation of a gap, and the change of it, made again; None where its run lacks them
        by now. `plan` is its set as it is now, by default as it was searched. Raises what `RunFile`
        raises."""
        item = self._item(gap, plan)
        if item is None or (recorded := self._conversation(item, item.plan.cases[0])) is None:
            return None
        mutant = recorded.mutant(None if gap.turn is None else gap.turn - 1, gap.digest)
        return None if mutant is None else (recorded, mutant)

    async def of_case(self, gap: Gap, plan: SetPlan) -> GapReport:
        """The gaps of the case of a gap by its set as it is now. Raises what `RunFile` raises."""
        search, item = GapSearch(Coverage(self.coverage.tools)), self._item(gap, plan)
        if item and (recorded := self._conversation(item, item.plan.cases[0])):
            await search.add(gap.case, recorded)
        return search.report()

    def passing(self, gap: Gap, files: Iterable[Path], plan: SetPlan | None = None) -> Iterator[Conversation]:
        """The other results of the case of a gap in these runs that may pass. Parameters as of `changed`."""
        if (searched := self._item(gap, plan)) is None:
            return
        for path in files:
            file = RunFile(path)
            if gap.case not in file.numbers:
                continue
            item = CasesInRun(file, searched.plan)
            case = item.plan.cases[0]
            expected, row, repeats = self._results(item, case)
            changed = _passing_repeat(repeats) if path == searched.file.path else None
            for place, result in enumerate(repeats):
                if place != changed and _may_pass(result) and not _has_other_input(item, case, result):
                    turns = expected.scored_turns(_turns(item, row, place, result, expected))
                    yield Conversation(turns, result.final_state)

    def _item(self, gap: Gap, plan: SetPlan | None) -> CasesInRun | None:
        """The case of a gap in its run."""
        for item in self.cases.in_runs:
            if item.plan.case_path == gap.path and gap.eval_id in item.plan.eval_ids:
                now = (plan or item.plan).only([gap.eval_id])
                return CasesInRun(item.file, now) if len(now.cases) else None
        return None

    def unjudged(self) -> Iterator[tuple[CasesInRun, CaseId, RecordedCase]]:
        """The recorded conversations with changes that a judge may notice. Raises what `RunFile` raises."""
        for item in self.cases.in_runs:
            if not any(case_id in self.search.unjudged for case_id in item.plan.case_ids):
                continue
            for case in item.plan.cases:
                case_id = CaseId(item.plan.case_path, case.eval_id)
                if case_id in self.search.unjudged and (recorded := self._conversation(item, case)):
                    yield item, case_id, recorded

    async def _add(self, item: CasesInRun, case: EvalCase) -> None:
        case_id = CaseId(item.plan.case_path, case.eval_id)
        expected, row, repeats = self._results(item, case)
        self.coverage.add_expected(case, expected)
        for repeat in repeats:
            self.coverage.add_actual(case_id, repeat.actual, _changed_state(case, repeat.final_state))
        recorded = self._recorded(item, case, expected, row, repeats)
        if isinstance(recorded, str):
            self.search.skip(case_id, item.plan.eval_set_id, recorded)
        else:
            await self.search.add(case_id, recorded)

    def _results(
        self, item: CasesInRun, case: EvalCase
    ) -> tuple[Expected, CaseInRun, Sequence[RepeatResult]]:
        """The expectation of a case, with secrets masked as in the run's file, and its results there."""
        plan, secrets = item.plan, self._secrets
        if item not in self._expected:
            self._expected[item] = Expected(
                plan.eval_set_id,
                case,
                secrets.masked(plan.config),
                item.file.header.settings.adk_verdicts,
                config_name=plan.config_name,
            )
        expected = self._expected[item].of_case(secrets.masked(case))
        row = item.file.case(CaseId(plan.case_path, case.eval_id))
        assert row is not None
        return expected, row, item.file.results(row.number, secrets=secrets)

    def _conversation(self, item: CasesInRun, case: EvalCase) -> RecordedCase | None:
        """The passing conversation of a case; None without one."""
        recorded = self._recorded(item, case, *self._results(item, case))
        return None if isinstance(recorded, str) else recorded

    def _recorded(
        self,
        item: CasesInRun,
        case: EvalCase,
        expected: Expected,
        row: CaseInRun,
        repeats: Sequence[RepeatResult],
    ) -> RecordedCase | str:
        """The passing conversation of a case; or why there is none."""
        place = _passing_repeat(repeats)
        if place is None:
            errors = dict.fromkeys(crash_text(result.error) for result in repeats if result.error)
            return ": ".join((f"did not pass in {item.run}", *islice(errors, 1)))
        repeat = repeats[place]
        if _has_other_input(item, case, repeat):
            return f"changed since {item.run}: run it again"
        turns = expected.scored_turns(_turns(item, row, place, repeat, expected))
        return RecordedCase(expected, turns, repeat.final_state, self.coverage.tools, self._agents, place)


def _changed_state(case: EvalCase, final_state: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The keys of a final state that are expected, or have another value than at the start."""
    if final_state is None:
        return None
    initial = case.session_input.state if case.session_input else {}
    expected = case.final_session_state or {}
    return {
        key: value
        for key, value in final_state.items()
        if key in expected or not equal(initial.get(key, ABSENT), value)
    }


def _expected_tools(plan: SetPlan) -> Iterator[str]:
    """The tools that the cases call, declared or not."""
    for stored in plan.stored_cases:
        yield from expected_calls(json.loads(stored.eval_case_text))


def _passing_repeat(repeats: Sequence[RepeatResult]) -> int | None:
    """The first repeat that passed, else the first that may pass; None for none."""
    candidates = [number for number, result in enumerate(repeats) if _may_pass(result)]
    return min(candidates, key=lambda number: repeats[number].status is not Status.PASSED, default=None)


def _may_pass(result: RepeatResult) -> bool:
    """Whether a result passed, or only metrics failed that are computed again."""
    if result.status is Status.PASSED:
        return True
    others = (
        metric for metric in result.metrics if metric.status not in (Status.PASSED, Status.INFORMATIONAL)
    )
    return (
        result.error is None
        and bool(result.actual)
        and all(is_decided_again(metric.name) for metric in others)
    )


def _has_other_input(item: CasesInRun, case: EvalCase, result: RepeatResult) -> bool:
    """Whether the agent would get something else of the case than in the run."""
    if result.expects == case_fingerprint(case):
        return False
    settings = item.file.header.settings
    modes = modes_of(settings.record, settings.tools, item.plan.config.evaltui.tools)
    return result.given != agent_input_fingerprint(case, modes)


def _turns(
    item: CasesInRun, row: CaseInRun, place: int, result: RepeatResult, expected: Expected
) -> Sequence[Invocation]:
    # Only events tell what a trace lacks, outputs, and what judges read of agents.
    if item.file.header.of_traces or expected.score_outputs or expected.is_judged:
        events = item.file.events(row.number).get(place, ())
        return invocations_from_events(events, app_details=reads_app_details(expected))
    return result.actual
