"""Two runs compared: rows of cases, a case turn by turn, and its reasons for failing."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from evaltui.core.compare.diff import diff_state, texts_of_both, turn_result
from evaltui.core.compare.explain import summary
from evaltui.core.compare.run_comparison import (
    KINDS,
    CaseChange,
    Comparison,
    Kind,
    circumstance_changes,
    compare,
)
from evaltui.core.compare.run_summary import CaseSummary, RunSummary
from evaltui.core.conversation.invocations import invocations_from_events
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.eval_set import Invocation, user_text
from evaltui.core.model.outcome import CaseResult, RepeatResult, TurnResult
from evaltui.runs.history import StoredRun, open_run
from evaltui.text.values import show_value
from evaltui.workbench.agent.background import Lookups
from evaltui.workbench.messages import Messages, RunsRead

# Of what did not change there is the most, and the least to see.
FOLDED_KINDS: frozenset[Kind] = frozenset({"unchanged", "not run"})


StateChanges = tuple[tuple[str, str, str], ...]
"""Differences of two session states: the path, and both values as JSON."""


@dataclass(frozen=True)
class ComparedRuns:
    base: StoredRun
    candidate: StoredRun
    comparison: Comparison

    @property
    def between(self) -> tuple[str, ...]:
        """The differences of the two runs besides the agent's behaviour, in words."""
        return circumstance_changes(self.base.summary, self.candidate.summary)

    @property
    def is_unfinished(self) -> bool:
        """Whether one of the runs did not come to its end, and may still go on."""
        return None in (self.base.status, self.candidate.status)


@dataclass(frozen=True)
class KindTitle:
    kind: Kind
    count: int
    folded: bool


ComparedRow = KindTitle | CaseChange


def compare_runs(base: Path, candidate: Path) -> ComparedRuns:
    """In a thread: compares two runs. Raises OSError, and ValueError for unreadable runs."""
    before, after = open_run(base), open_run(candidate)
    return ComparedRuns(before, after, compare(before.summary, after.summary))


def comparison_rows(comparison: Comparison, folded: Collection[Kind]) -> Iterator[ComparedRow]:
    """The rows by kind of change, the most important first, each with its cases unless it is folded."""
    for kind in KINDS:
        cases = comparison.of(kind)
        if cases:
            yield KindTitle(kind, len(cases), kind in folded)
            if kind not in folded:
                yield from cases


@dataclass(frozen=True)
class TurnOfBoth:
    """A turn of a case in both runs."""

    result: TurnResult
    """The base as expected side, the candidate as actual side."""
    user: str
    """The user's message."""
    is_known: bool
    """Whether the agents, or traces, report all of both."""

    @property
    def says_the_same(self) -> bool:
        """Whether both responses are equal."""
        return self.result.response.expected == self.result.response.actual

    @property
    def is_equal(self) -> bool:
        """Whether both runs have the same calls and response."""
        return self.says_the_same and all(diff.op == "same" for diff in self.result.calls)


@dataclass(frozen=True)
class Trajectories:
    """The turns of a case in the base and in the candidate."""

    turns: tuple[TurnOfBoth, ...]
    problems: tuple[str, str]
    """Why the turns of the base, and of the candidate, are missing; "" where they are not."""
    state: StateChanges = ()
    """The differences of the final session state."""
    repeats: tuple[str, str] = ("", "")
    """The repeat of the base and of the candidate: `repeat 2 of 3`; "" for a single one."""


def trajectories(compared: ComparedRuns, change: CaseChange) -> Trajectories:
    """In a thread: the turns of a case in both runs."""
    base, base_number, base_problem = _repeat(compared.base, change.case, change.base)
    candidate, number, problem = _repeat(compared.candidate, change.case, change.candidate)
    pairs = zip_longest(*(() if repeat is None else repeat.actual for repeat in (base, candidate)))
    runs = compared.base.summary, compared.candidate.summary
    thoughts = any(_scores_thoughts(run, change.case.path) for run in runs)
    turns = tuple(turn_of_both(before, after, thoughts=thoughts) for before, after in pairs)
    state: StateChanges = ()
    states = [None if repeat is None else repeat.final_state for repeat in (base, candidate)]
    if states[0] is not None and states[1] is not None:
        state = state_changes(states[0], states[1])
    return Trajectories(turns, (base_problem, problem), state, (base_number, number))


def state_changes(base: Mapping[str, Any], candidate: Mapping[str, Any]) -> StateChanges:
    """The differences of two final states."""
    changes = diff_state({**dict.fromkeys(candidate), **base}, dict(candidate))
    return tuple((diff.path, show_value(diff.expected), show_value(diff.actual)) for diff in changes)


def _scores_thoughts(run: RunSummary, path: str) -> bool:
    """Whether the thoughts of a response were scored in a run, as google-adk does."""
    config = run.circumstances.configs.get(path) or {}
    scores = (config.get("evaltui") or {}).get("thoughts") == "score"
    return run.by_label or run.circumstances.adk_verdicts or scores


def turn_of_both(
    before: Invocation | None, after: Invocation | None, *, thoughts: bool = False
) -> TurnOfBoth:
    """A turn in two conversations; None where one lacks it. `thoughts` includes those of responses."""
    texts = texts_of_both(before, after, thoughts=thoughts)
    result = turn_result(
        before, after, expectation="these calls", expected_text=texts[0], actual_text=texts[1]
    )
    turn = after or before
    is_known = not any(side.untold or side.intermediate_data is None for side in (before, after) if side)
    return TurnOfBoth(result, user_text(turn.user_content) if turn else "", is_known)


def _repeat(run: StoredRun, case: CaseId, summed: CaseSummary | None) -> tuple[RepeatResult | None, str, str]:
    """The deciding repeat of a case with its turns, and its label among several; None and the reason where it
    is missing."""
    if summed is None:
        return None, "", "no result"
    try:
        result = _result(run, case, summed)
        number, count = result.deciding_repeat, len(result.repeats)
        repeat = result.repeats[number] if count else None
        # Only events have what a workflow returned besides its texts.
        if repeat is not None and (events := run.events(case).get(number)):
            repeat = replace(repeat, actual=tuple(invocations_from_events(events)))
    except (OSError, ValueError, KeyError) as error:
        return None, "", f"unreadable: {error}"
    which = f"repeat {number + 1} of {count}" if count > 1 else ""
    if repeat is None or not repeat.actual:
        error_of = None if repeat is None else repeat.error
        return repeat, which, error_of.message if error_of else "no trajectory in this run"
    return repeat, which, ""


def _result(run: StoredRun, case: CaseId, summed: CaseSummary) -> CaseResult:
    # A run that knows set ids only has the case by its set id.
    return run.case(case if case in run.summary.cases else CaseId(summed.eval_set_id, case.eval_id))


class Reasons:
    """Why cases did not pass in one of two runs, read on demand."""

    def __init__(self, compared: ComparedRuns, messages: Messages) -> None:
        self._compared = compared
        # A case of which it is unknown which file has it is two changes, one of each run.
        self._changes: dict[tuple[CaseId, bool], CaseChange] = {}
        self._reasons = Lookups(self._why, messages, RunsRead)

    def of(self, change: CaseChange) -> str | None:
        """A sentence, "" for a passed case; None while it is being read."""
        if not any(side and not side.passes for side in (change.base, change.candidate)):
            return ""
        key = change.case, change.candidate is None
        self._changes[key] = change
        return self._reasons.get(key)

    def _why(self, key: tuple[CaseId, bool]) -> str:
        """In a thread: the reason in the candidate, or in the base where the candidate passes."""
        change = self._changes[key]
        fails = change.candidate is not None and not change.candidate.passes
        run, side = (
            (self._compared.candidate, change.candidate) if fails else (self._compared.base, change.base)
        )
        if side is None or side.passes:
            return ""
        try:
            reason = summary(_result(run, change.case, side))
        except (OSError, ValueError, KeyError) as error:
            return f"unreadable: {error}"
        return reason if fails else f"was: {reason}"

    async def close(self) -> None:
        """Cancels the background reading."""
        await self._reasons.close()
