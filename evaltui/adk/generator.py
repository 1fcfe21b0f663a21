"""`EvaluationGenerator` with the signature of google-adk: what an agent does in eval cases, unscored."""

from __future__ import annotations

from typing import Any

from evaltui.runs.evaluation import CaseResponses, generate_responses

EvalCaseResponses = CaseResponses


class EvaluationGenerator:
    """Runs an agent on eval sets without scoring."""

    @staticmethod
    async def generate_responses(
        eval_set: Any,
        agent_module_path: Any,
        repeat_num: int = 3,
        agent_name: str | None = None,
        user_simulator_config: Any = None,
    ) -> list[EvalCaseResponses]:
        """Each case of a set, `repeat_num` times. The agent is what `evaltui.evaluate` takes.

        Raises RuntimeError where the agent raised: `evaltui.generate_responses` has such cases, too.
        """
        config = (
            {} if user_simulator_config is None else {"user_simulator_config": _data(user_simulator_config)}
        )
        responses = await generate_responses(
            agent_module_path,
            eval_set,
            {"criteria": {}, **config},
            repeat_num=repeat_num,
            agent_name=agent_name,
        )
        if failed := [repr(response) for response in responses if any(response.errors)]:
            raise RuntimeError("\n".join(failed))
        return responses


def _data(model: Any) -> Any:
    return model.model_dump(mode="json", exclude_none=True) if hasattr(model, "model_dump") else model
