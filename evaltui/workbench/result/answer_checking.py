"""Checking an answer: the checks that its expected text proposes, and their effect."""

from __future__ import annotations

from typing import Any

from evaltui.core.compare.proposals import Proposal
from evaltui.core.metrics.answer_rules import check_in_words, proposed_checks
from evaltui.core.model.answer_rule import AnswerRule, RuleScope
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import CaseResult
from evaltui.documents.editing.config import ConfigEditor, Rule
from evaltui.documents.edits import EditError
from evaltui.text.keys import key_of
from evaltui.workbench.agent.agent_state import AgentState
from evaltui.workbench.case.editing import Editing
from evaltui.workbench.result.relaxing import RuleTrial, rule_problem


class AnswerChecking(RuleTrial):
    """The response of a turn, of which a check is made.

    Raises EditError for a case without a result, or with a result of other turns, and for a turn without a
    response.
    """

    def __init__(self, agent: AgentState, editing: Editing, case: CaseId, turn: int) -> None:
        scored = editing.outcomes.get(case)
        if scored is None or turn >= len(scored.shown.turns):
            raise EditError("Not run")
        if editing.outcomes.has_other_input(case, scored):
            # A check names its turn, which may be another one by now.
            raise EditError(f"Case changed after {scored.run.name}   {key_of('run')}  Run case")
        super().__init__(agent, editing, case, scored)
        response = scored.shown.turns[turn].response
        if not response.expected and not response.actual:
            raise EditError("No response")
        self.turn = turn
        """Counted from 0."""
        self.expected = response.expected or ""
        self.actual = response.actual or ""

    def proposals(self) -> list[Proposal]:
        """The checks that the expected response fits, or where there is none the actual one."""
        checks = proposed_checks(self.expected or self.actual)
        return [Proposal(check, check_in_words(check)) for check in checks]

    def rule(self, check: dict[str, Any], scope: RuleScope = "case") -> dict[str, Any]:
        """A check of this turn, or of every response of this set or of all sets."""
        names = self._scope(scope)
        return {**names, **({"turn": self.turn} if "case" in names else {}), **check}

    def _put(self, config: ConfigEditor, tried: Rule) -> None:
        config.put_answer_rule(tried)

    def _concerns(self, result: CaseResult, tried: Rule) -> bool:
        return True

    def _label(self, tried: Rule) -> str:
        return f"check response of turn {self.turn + 1}"


def check_problem(text: str) -> str | None:
    """Why a text is no valid check, as a sentence; None where it is."""
    return rule_problem(text, AnswerRule.model_validate)
