"""What a host is asked to run a case, what is expected of it, and why a case is not run at all."""

from __future__ import annotations

from evaltui.core.conversation.replay import expected_places
from evaltui.core.conversation.waiting import responses_in
from evaltui.core.metrics.preflight import SCENARIO, withheld
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.eval_set import EvalCase
from evaltui.core.model.events import Json
from evaltui.core.scoring import Expected
from evaltui.core.simulated_users import simulated_user
from evaltui.files.folders import agent_folder
from evaltui.runner.plan import RunPlan, WorkItem
from evaltui.runner.protocol import places_to_json

_EMPTY = "the conversation is empty; nothing to run"
_NOT_HELD = "no conversation in the traces is of this case"


class CaseRequests:
    """The cases of a plan as hosts and metrics are given them."""

    def __init__(self, plan: RunPlan) -> None:
        self._plan = plan
        self._withheld = {path: withheld(plan.checks, path) for path in (one.case_path for one in plan.sets)}
        # By the place of a case in the plan, only while it is being run.
        self._expected: dict[int, Expected] = {}
        # Of some case of each set, by the set's path.
        self._expected_of: dict[str, Expected] = {}

    def is_refused(self, item: WorkItem) -> bool:
        """Whether there is nothing to run; what a case says is looked at only where it has a say in it."""
        if self._plan.held is None and item.turns is not None:
            return item.turns == 0
        return self.refusal(item) is not None

    def refusal(self, item: WorkItem) -> tuple[str, str] | None:
        """Why a case is not run at all, a sentence, after the name of what has it."""
        if self._plan.held is not None:
            if item.turns == 0:
                return "eval_case", _EMPTY
            return None if self._plan.held.get(item.case) else ("conversation", _NOT_HELD)
        case = item.set.cases[item.index]
        user = simulated_user(case, item.set.config)
        if user is not None:
            reason = self._withheld[item.case.path].get(SCENARIO) or user.refusal
            return None if reason is None else (SCENARIO, reason)
        if not case.conversation:
            return "eval_case", _EMPTY
        return None

    def expected(self, item: WorkItem) -> Expected:
        """What is expected of a case, kept until it is forgotten."""
        if (known := self._expected.get(item.number)) is not None:
            return known
        one = item.set
        case = one.cases[item.index]
        if (other := self._expected_of.get(item.case.path)) is None:
            verdicts, reasons = self._plan.settings.adk_verdicts, self._withheld[item.case.path]
            other = Expected(one.eval_set_id, case, one.config, verdicts, reasons, one.config_name)
            self._expected_of[item.case.path] = other
        expected = self._expected[item.number] = other.of_case(case)
        return expected

    def forget(self, item: WorkItem) -> None:
        """All repeats of the case are over."""
        self._expected.pop(item.number, None)

    def message(self, item: WorkItem) -> Json:
        """The request that makes a host run the case, without what is recorded of it."""
        case = self.expected(item).case
        given = case.session_input
        session: Json = {}
        if given is not None:
            session = {
                "app_name": given.app_name,
                "user_id": given.user_id,
                "session_id": given.session_id or "",
                "state": given.state,
            }
        return {"op": "run", "session": session, **self._fixed_by_case(case, item.set.config)}

    def _fixed_by_case(self, case: EvalCase, config: EvalConfig) -> Json:
        """What the user of a case says, or who plays the user."""
        if (user := simulated_user(case, config)) is not None:
            # A folder would be made importable, and this process is somebody else's.
            here = self._plan.agent.in_process
            folder = None if here else str(agent_folder(self._plan.agent_dir))
            return {"simulated_user": {"user": user.played.to_json(), "agent_folder": folder}}
        turns = case.conversation or []
        messages = [turn.user_content.model_dump(mode="json", exclude_none=True) for turn in turns]
        if not any(map(responses_in, messages)):
            return {"turns": messages}
        return {"turns": messages, "places": places_to_json(expected_places(turns))}
