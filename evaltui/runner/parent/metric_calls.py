"""Custom metrics and questions to judges as requests to what computes them, and what they come to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evaltui.core.metrics.custom import result_of_evaluation, result_of_turns
from evaltui.core.metrics.judges.judge import Answer
from evaltui.core.metrics.metric import MetricInput, not_evaluated, unpaired
from evaltui.core.model.config import EvalMetric
from evaltui.core.model.eval_set import Invocation
from evaltui.core.model.events import Json
from evaltui.core.model.outcome import ErrorInfo, MetricResult, Status
from evaltui.files.folders import agent_folder
from evaltui.runner.errors import AgentBrokenError, HostLostError, RequestFailedError
from evaltui.runner.parent.scoring_hosts import ScoringHosts, ScoringKind


class MetricCalls:
    """Of one run, to processes of one kind."""

    def __init__(self, hosts: ScoringHosts, kind: ScoringKind, agent_dir: Path) -> None:
        self._hosts = hosts
        self._kind = kind
        self._agent_folder = str(agent_folder(agent_dir).resolve())

    async def score(self, given: MetricInput) -> MetricResult:
        """The function's verdict, or that of the threshold on its scores; whatever it does wrong is an ERROR
        of this metric, with its traceback."""
        metric = given.metric
        if metric.scores_turns and (problem := unpaired(given)):
            return not_evaluated(metric, problem)
        try:
            answer = await self._hosts.answer(self._kind, self._request(given))
        except (AgentBrokenError, RequestFailedError, HostLostError) as failed:
            return _error(metric, failed.error)
        if metric.scores_turns:
            return result_of_turns(given, answer["turns"])
        return result_of_evaluation(given, answer["result"], answer["where"])

    async def ask(self, judge: str, prompt: str, config: Json | None) -> Answer:
        """What a judge answers to a prompt; see `model_client.ask`.

        Raises RequestFailedError, HostLostError or AgentBrokenError.
        """
        request = {
            "op": "ask",
            "judge": judge,
            "prompt": prompt,
            "config": config,
            "agent_folder": self._agent_folder,
        }
        reply = await self._hosts.answer(self._kind, request)
        return Answer(reply["text"], cut_off=reply["cut_off"], usages=tuple(reply["usages"]))

    def _request(self, given: MetricInput) -> Json:
        metric, scenario = given.metric, given.scenario
        return {
            "op": "metric",
            "agent_folder": self._agent_folder,
            "path": metric.custom_function_path,
            "metric": metric.model_dump(mode="json", exclude_unset=True, serialize_as_any=True),
            "scores_turns": metric.scores_turns,
            "actual": _dump(given.actual),
            "expected": None if given.expected is None else _dump(given.expected),
            "scenario": None if scenario is None else scenario.model_dump(mode="json", exclude_none=True),
            "without": sorted(given.context),
        }


def _dump(invocations: Sequence[Invocation]) -> list[Json]:
    return [one.model_dump(mode="json", exclude_none=True) for one in invocations]


def _error(metric: EvalMetric, error: ErrorInfo) -> MetricResult:
    error = error.of_judge
    return MetricResult(
        metric.metric_name,
        None,
        metric.threshold,
        Status.ERROR,
        reason=str(error),
        error=error,
    )
