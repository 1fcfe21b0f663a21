"""Gaps of eval sets by stored runs: which run has a set, and what its passing cases do not notice."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from evaltui.core.conversation.invocations import invocations_from_events
from evaltui.core.gaps.coverage import Coverage
from evaltui.core.gaps.gaps import GapReport, GapSearch
from evaltui.core.gaps.mutants import RecordedCase
from evaltui.core.model.case_id import CaseId, case_fingerprint
from evaltui.core.model.eval_set import EvalCase, Invocation, tool_calls
from evaltui.core.model.modes import modes_of
from evaltui.core.model.outcome import RepeatResult, Status
from evaltui.core.model.problems import SelectionError
from evaltui.core.model.stored_cases import StoredCases
from evaltui.core.model.tool_schema import DeclaredTool, declared_tools
from evaltui.core.recordings.given import agent_input_fingerprint
from evaltui.core.scoring import Expected
from evaltui.core.secrets import Secrets
from evaltui.project.settings import secrets_of
from evaltui.runner.plan import SetPlan
from evaltui.runs.adk_results import SUFFIX as ADK_SUFFIX
from evaltui.runs.history import find_run
from evaltui.runs.run_file import CaseInRun, RunFile
from evaltui.runs.sets import FileSets
from evaltui.runs.store import RunStore


@dataclass(frozen=True)
class SetInRun:
    """An eval set of now beside the run that has its results."""

    file: RunFile
    plan: SetPlan
    eval_ids: Collection[str] | None
    """The selected cases; None for all."""

    @property
    def run(self) -> str:
        """`run 12`"""
        return f"run {self.file.number or self.file.id}"

    @cached_property
    def agents(self) -> list[str]:
        """The agent by its name, and those below it."""
        agent = self.file.agent
        return [str(name) for name in (agent.get("name"), *(agent.get("sub_agents") or ())) if name]


def sets_in_runs(
    agent_dir: Path, store: RunStore, selected: Mapping[str, tuple[Path, Collection[str] | None]], ref: str
) -> Iterator[SetInRun]:
    """Each selected set, by the path of `CaseId`, with the run `ref`, "" for the newest run that has it.

    A set without a run is left out. Raises SelectionError for an unknown run, OSError, EvalSetError, and
    ValueError for a run that cannot be read.
    """
    named = find_run(store, ref) if ref else None
    if named is not None and named.name.endswith(ADK_SUFFIX):
        raise SelectionError(
            f"{named}: a result file of google-adk has no such results; name a run of evaltui"
        )
    sources: dict[Path, FileSets] = {}
    open_sets = dict(selected)
    for path in [named] if named else reversed(store.files()):
        if not open_sets:
            return
        file = RunFile(path)
        header = file.header
        for case_path in [item.path for item in header.sets if item.path in open_sets]:
            if path not in sources:
                config, session = (
                    Path(text) if text else None for text in (header.config, header.initial_session)
                )
                sources[path] = FileSets(agent_dir, config, session, header.settings.config_choice)
            set_path, eval_ids = open_sets.pop(case_path)
            yield SetInRun(file, sources[path].open(set_path), eval_ids)


async def find_gaps(agent_dir: Path, sets: Iterable[SetInRun]) -> GapReport:
    """The gaps of eval sets. Raises what `RunFile` raises."""
    sets, secrets = list(sets), secrets_of(agent_dir)
    declared = {tool.name: tool for item in sets for tool in declared_tools(item.file.agent)}
    agents = list(dict.fromkeys(agent for item in sets for agent in item.agents))
    called = dict.fromkeys(name for item in sets for name in _expected_tools(item.plan))
    coverage = Coverage({name: DeclaredTool(name) for name in called} | declared)
    coverage.declare(declared.values(), agents)
    search = GapSearch(coverage)
    for item in sets:
        for case in item.plan.cases:
            if item.eval_ids is None or case.eval_id in item.eval_ids:
                await _add(search, item, case, secrets, agents)
    return search.report()


def _expected_tools(plan: SetPlan) -> Iterator[str]:
    if isinstance(plan.cases, StoredCases):
        for stored in plan.cases.stored:
            yield from stored.outline.tools
        return
    for case in plan.cases:
        for turn in case.conversation or []:
            yield from (call.name or "" for call in tool_calls(turn.intermediate_data))


async def _add(
    search: GapSearch, item: SetInRun, case: EvalCase, secrets: Secrets, agents: Collection[str]
) -> None:
    case_id, header, plan = CaseId(item.plan.case_path, case.eval_id), item.file.header, item.plan
    # As the run's file has it.
    expected = Expected(
        plan.eval_set_id,
        secrets.masked(case),
        secrets.masked(plan.config),
        header.settings.adk_verdicts,
        config_name=plan.config_name,
    )
    search.coverage.add_expected(case, expected)
    row = item.file.case(case_id)
    if row is None:
        search.skip(case_id, plan.eval_set_id, f"not in {item.run}")
        return
    repeats = item.file.results(row.number, secrets=secrets)
    for repeat in repeats:
        search.coverage.add_actual(repeat.actual, repeat.final_state)
    place, passed = next(
        ((number, repeat) for number, repeat in enumerate(repeats) if repeat.status is Status.PASSED),
        (0, None),
    )
    if passed is None:
        search.skip(case_id, plan.eval_set_id, f"did not pass in {item.run}")
    elif _has_other_input(item, case, passed):
        search.skip(case_id, plan.eval_set_id, f"changed since {item.run}: run it again")
    else:
        turns = expected.scored_turns(_turns(item, row, place, passed, expected))
        state = passed.final_state
        await search.add(case_id, RecordedCase(expected, turns, state, search.coverage.tools, tuple(agents)))


def _has_other_input(item: SetInRun, case: EvalCase, result: RepeatResult) -> bool:
    """Whether the agent would get something else of the case than in the run."""
    if result.expects == case_fingerprint(case):
        return False
    settings = item.file.header.settings
    modes = modes_of(settings.record, settings.tools, item.plan.config.evaltui.tools)
    return result.given != agent_input_fingerprint(case, modes)


def _turns(
    item: SetInRun, row: CaseInRun, place: int, result: RepeatResult, expected: Expected
) -> Sequence[Invocation]:
    # Only events tell what a trace lacks, and outputs.
    if item.file.header.of_traces or expected.score_outputs:
        return invocations_from_events(item.file.events(row.number).get(place, ()))
    return result.actual
