"""Drafting what would notice a change: the drafts of a gap with their effect, and writing one."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from evaltui.core.gaps.coverage import CellCoverage
from evaltui.core.gaps.drafts import Conversation, Draft, is_noticed, passing_results, proven_drafts
from evaltui.core.gaps.gaps import Gap, KindOfChange, passes
from evaltui.core.gaps.mutants import Mutant, RecordedCase
from evaltui.core.model.answer_rule import RuleScope
from evaltui.core.model.outcome import CaseResult
from evaltui.core.model.stored_cases import StoredCase
from evaltui.core.scoring import turn_results
from evaltui.documents.editing.accepting import Accepting
from evaltui.documents.editing.config import ConfigEditor
from evaltui.documents.editing.set import SetEditor, copy_id
from evaltui.documents.edits import EditError
from evaltui.documents.line_changes import LineChange, changed_lines
from evaltui.workbench.agent.agent_state import AgentState
from evaltui.workbench.agent.background import Progress, run_in_thread
from evaltui.workbench.case.case_plan import Plan, change_config, numbers_in_sets, show_errors
from evaltui.workbench.case.editing import Editing
from evaltui.workbench.gaps.search import Gaps
from evaltui.workbench.result.relaxing import Trial
from evaltui.workbench.state import Selection

_MAX_CHANGES = 200
"""Changes of a kind in a set that a draft is tried on."""
_IS_GONE = "This change is no longer there; search again"


@dataclass(frozen=True)
class Proof:
    """The changes that a draft notices, and the passing results that it lets pass."""

    is_noticed: bool
    passing: int
    results: int
    """The passing results of the case, those that the draft fails included."""
    in_case: tuple[int, int]
    """The noticed changes of this kind in the case, and all."""
    in_set: tuple[int, int] | None
    """The noticed changes of this kind in the set, and all; None where these are too many to try."""


@dataclass(frozen=True)
class DraftedGap:
    """A change with its proven drafts, and the passing results of its case."""

    recorded: RecordedCase
    mutant: Mutant
    passing: Sequence[Conversation]
    drafts: Sequence[Draft]


@dataclass(frozen=True)
class ScopedDraft:
    """A draft, and for a check the cases that it is for."""

    draft: Draft
    scope: RuleScope


class GapDrafting(Trial[ScopedDraft]):
    """A change that its case does not notice, of which a check, a criterion or an expectation is made.

    Raises EditError for a case without a result.
    """

    def __init__(
        self,
        agent: AgentState,
        editing: Editing,
        gaps: Gaps,
        kind: KindOfChange,
        gap: Gap,
        drafted: DraftedGap,
    ) -> None:
        scored = editing.outcomes.get(gap.case)
        if scored is None:
            raise EditError("Not run")
        super().__init__(agent, editing, gap.case, scored)
        self.kind = kind
        self.gap = gap
        self.drafted = drafted
        self.is_searched_alone = False
        """Whether a check was written that only this case's gaps change by, not coverage."""
        self._gaps = gaps

    @property
    def drafts(self) -> Sequence[Draft]:
        """The proven drafts, the best first."""
        return self.drafted.drafts

    def scoped(self, draft: Draft, scope: RuleScope = "case") -> ScopedDraft:
        """A draft for this case, for this set, or for all cases of this config."""
        return ScopedDraft(draft, scope)

    def _names(self, tried: ScopedDraft) -> Mapping[str, str]:
        if tried.draft.check is not None:
            return self._scope(tried.scope)
        return {} if tried.draft.options else self._scope("case")

    def _put(self, config: ConfigEditor, tried: ScopedDraft) -> None:
        draft = tried.draft
        if draft.check is not None:
            drafted = self.drafted
            config.put_answer_rule(draft.rule(drafted.recorded.expected, drafted.mutant.turn, tried.scope))
        if draft.rubric:
            metric = next((name for name in config.metrics if name.startswith("rubric_based")), None)
            if metric is None:
                raise EditError("Judged, effect unknown; add a rubric metric to the criteria first")
            config.insert_rubric(metric, len(config.rubrics(metric)), draft.rubric)
        for name, value in (draft.options or {}).items():
            if name != "threshold":
                config.set_option(draft.metric, (name,), value)
            elif config.criterion_path(draft.metric):
                config.set_threshold(draft.metric, value)
            else:
                config.add_metric(draft.metric, value)

    @property
    def _number(self) -> int:
        """The number of the case in its set."""
        (number,) = numbers_in_sets(self._editing, [self.case])[self._set_path]
        return number

    def _put_in(self, tried: ScopedDraft, to: SetEditor) -> None:
        """Writes the draft into the set and its config."""
        self._put(ConfigEditor(to.config), tried)
        recorded, turn = self.drafted.recorded, self.drafted.mutant.turn
        if tried.draft.calls is not None and turn is not None:
            rows = turn_results(recorded.expected, recorded.turns, ())[turn].calls
            Accepting(to.case(self._number)).calls(turn, rows, recorded.turns[turn])

    def _case_after(self, tried: ScopedDraft) -> StoredCase:
        if tried.draft.calls is None:
            return super()._case_after(tried)
        return self._editing.case_after(self._set_path, self._number, partial(self._put_in, tried))

    def changes(self, tried: ScopedDraft) -> list[tuple[Path, Sequence[LineChange]]]:
        changes = [(path, lines) for path, lines in super().changes(tried) if lines]
        if tried.draft.calls is not None:
            plan = Plan(self._editing)
            self._put_in(tried, plan.of(self._set_path))
            before = self._editing.document(self._set_path)
            after = before.edited(plan.edits.get(self._set_path, ()))
            changes.append((self._set_path, changed_lines(before, after)))
        return changes

    def apply(self, tried: ScopedDraft) -> bool:
        is_for_case = tried.draft.check is not None and tried.scope == "case"
        self.is_searched_alone = is_for_case and self.drafted.mutant.subject == "answers"
        return self._editing.do(self._label(tried), self._set_path, partial(self._put_in, tried))

    def _concerns(self, result: CaseResult, tried: ScopedDraft) -> bool:
        return True

    def _label(self, tried: ScopedDraft) -> str:
        draft = tried.draft
        if draft.rubric:
            return "add rubric"
        if draft.metric:
            return f"change {draft.metric}"
        what = "accept calls" if draft.check is None else "check response"
        return f"{what} of turn {(self.drafted.mutant.turn or 0) + 1}"

    async def proof(self, tried: ScopedDraft) -> Proof:
        """The proof of a draft. Raises OSError, ValueError."""
        progress = Progress()
        return await run_in_thread(lambda: asyncio.run(self._prove(tried, progress)), progress)

    async def _prove(self, tried: ScopedDraft, progress: Progress) -> Proof:
        draft, scope = tried.draft, tried.scope
        recorded, mutant, turn = self.drafted.recorded, self.drafted.mutant, self.drafted.mutant.turn
        after = replace(recorded, expected=draft.applied(recorded.expected, turn, scope))
        of_set = [gap for gap in self.kind.gaps if gap.path == self.gap.path]
        of_case = [gap for gap in of_set if gap.eval_id == self.gap.eval_id]
        noticed: dict[Gap, bool] = {}
        is_small = len(of_set) <= _MAX_CHANGES
        for gap in of_set if is_small else of_case:
            progress.step()
            both = self._gaps.changed(gap, now=True)
            in_scope = scope != "case" or draft.check is None or gap in of_case
            if both is None or not in_scope:
                continue
            expected = draft.applied(both.recorded.expected, turn, scope)
            noticed[gap] = await is_noticed(replace(both.recorded, expected=expected), both.mutant)
        in_case = sum(noticed.get(gap, False) for gap in of_case)
        return Proof(
            await is_noticed(after, mutant),
            sum([await passes(after, *result) for result in self.drafted.passing]),
            len(self.drafted.passing),
            (in_case, len(of_case)),
            (sum(noticed.values()), len(of_set)) if is_small else None,
        )


class GapDrafts:
    """Drafts of what would notice the gaps that were found, and marks on those that are meant so."""

    def __init__(self, agent: AgentState, editing: Editing, gaps: Gaps) -> None:
        self._agent = agent
        self._editing = editing
        self._gaps = gaps

    async def of(self, kind: KindOfChange, gap: Gap) -> GapDrafting:
        """The drafts for a gap. Raises EditError where its change cannot be made again, OSError,
        EvalSetError."""
        drafted = await run_in_thread(lambda: self._drafted(gap), Progress())
        if drafted is None:
            raise EditError(_IS_GONE)
        return GapDrafting(self._agent, self._editing, self._gaps, kind, gap, drafted)

    def _drafted(self, gap: Gap) -> DraftedGap | None:
        """In a thread: a gap by its set and config as they are now, with proven drafts."""
        both = self._gaps.changed(gap, now=True)
        if both is None:
            return None
        recorded, mutant = both.recorded, both.mutant

        async def prove() -> DraftedGap:
            passing = await passing_results(recorded, self._gaps.passing(gap))
            drafts = await proven_drafts(recorded, mutant, passing)
            # Only in runs are secrets masked.
            is_masked = self._agent.secrets.has_marks
            drafts = [draft for draft in drafts if not is_masked(json.dumps(draft.check))]
            return DraftedGap(recorded, mutant, passing, drafts)

        return asyncio.run(prove())

    def refuses_case(self, cell: CellCoverage) -> str | None:
        """Why no case can be drafted for a cell, as a sentence."""
        if cell.reached:
            return "A case reaches it"
        return None if self._gaps.call_reaching(cell) else "No call reaches it"

    def add_case(self, cell: CellCoverage, path: Path) -> bool:
        """Adds a case to a set, in which a call that reaches a cell is expected, and selects it.

        Its user text is empty. False, with a message, where that fails.
        """
        call = self._gaps.call_reaching(cell)
        if call is None:
            return False
        with show_errors(self._editing.say):
            ids = SetEditor(self._editing.data(path)).eval_ids
            name = "_".join(re.findall(r"\w+", cell.name)).lower()
            eval_id = copy_id(name, ids) if name in ids else name

            def add(editor: SetEditor) -> None:
                editor.add_case(None, eval_id)
                editor.case(editor.count - 1).turn(0).insert_call(0, call.name or "", call.args)

            after = Selection(self._editing.sets.open(path).case_path, eval_id, 0)
            if self._editing.do(f"add {eval_id}", path, add, after=after):
                self._editing.navigation.show(after)
                return True
        return False

    def toggle_meant_so(self, kind: KindOfChange, gap: Gap) -> bool:
        """Marks a change as meant so in the config of its set, or removes its mark, as one step.

        False, with a message, where that fails.
        """
        eval_set = self._editing.sets.by_case_path(gap.path)
        is_named = eval_set is not None and eval_set.eval_set_id == gap.eval_set_id
        if eval_set is None or not is_named or eval_set.number(gap.eval_id) is None:
            # Renamed since the search.
            self._editing.say(_IS_GONE)
            return False
        names = {"set": gap.eval_set_id, "case": gap.eval_id}
        turn = {} if gap.turn is None else {"turn": gap.turn - 1}
        entry = {**names, **turn, "kind": kind.kind, "digest": gap.digest}
        is_marked = gap in kind.meant_so
        label = f"{'unmark' if is_marked else 'mark'} change of {gap.eval_id}"

        def put(config: ConfigEditor) -> None:
            if config.toggle_meant_so(entry) is is_marked:
                raise EditError("The mark changed; search again")

        stale = self._gaps.stale
        done = change_config(self._editing, label, self._editing.sets.file_of(gap.path), put)
        if done:
            self._gaps.follow_mark(kind.kind, gap, stale)
        return done
