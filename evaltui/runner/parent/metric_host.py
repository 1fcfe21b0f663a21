"""Custom metric functions and judges, in a host of their own: what they do there harms no case."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evaltui.core.metrics.custom import result_of_evaluation, result_of_turns
from evaltui.core.metrics.judges.judge import Answer
from evaltui.core.metrics.metric import MetricInput, not_evaluated, unpaired
from evaltui.core.model.config import EvalMetric
from evaltui.core.model.eval_set import Invocation
from evaltui.core.model.events import Json
from evaltui.core.model.outcome import ErrorInfo, MetricResult, Status
from evaltui.files.workspace import agent_folder
from evaltui.runner.parent.failures import AgentBrokenError, HostLostError, RequestFailedError
from evaltui.runner.parent.supervisor import IMPORT_TIMEOUT, Host, OnConsole


@dataclass(eq=False)
class _Request:
    """A request under way; `alone` is whether it was the only one all the time."""

    alone: bool


class MetricHost:
    """Started with the first metric or question, and again after one that brought it down.

    `files` are those of the user's that metrics have imported.
    """

    def __init__(self, agent_dir: Path, timeout: float, on_console: OnConsole) -> None:
        self._agent_folder = str(agent_folder(agent_dir).resolve())
        self._timeout = timeout
        self._on_console = on_console
        self.files: frozenset[Path] = frozenset()
        self._host: Host | None = None
        self._imported: set[str] = set()
        self._under_way: list[_Request] = []
        self._one_by_one = asyncio.Lock()

    async def score(self, given: MetricInput) -> MetricResult:
        """The function's verdict, or that of the threshold on its scores; whatever it does wrong is an ERROR
        of this metric, with its traceback."""
        metric = given.metric
        if metric.scores_turns and (problem := unpaired(given)):
            return not_evaluated(metric, problem)
        try:
            answer = await self._answer(self._request(given))
        except (AgentBrokenError, RequestFailedError, HostLostError) as failed:
            return _error(metric, failed.error)
        self.files |= frozenset(map(Path, answer["files"]))
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
        reply = await self._answer(request)
        return Answer(reply["text"], cut_off=reply["cut_off"])

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

    async def _answer(self, message: Json) -> Json:
        host = await self._running_host()
        request = _Request(alone=not self._under_way)
        for other in self._under_way:
            other.alone = False
        self._under_way.append(request)
        try:
            return await self._put(message, host, self._imported)
        except HostLostError:
            if request.alone:
                raise
        finally:
            self._under_way.remove(request)
        # Which of them did it shows where each is by itself.
        async with self._one_by_one:
            by_itself = Host("the metric")
            try:
                await self._load(by_itself)
                return await self._put(message, by_itself, set())
            finally:
                await by_itself.close()

    async def _put(self, message: Json, host: Host, imported: set[str]) -> Json:
        """The answer of this host, which has `imported` these functions."""
        if message["op"] == "metric" and message["path"] not in imported:
            # What takes long because it is the first time does not count as time of the metric.
            function = {key: message[key] for key in ("agent_folder", "path")}
            await host.request({"op": "import", **function}, IMPORT_TIMEOUT, lambda _: None)
            imported.add(message["path"])
        return await host.request(message, self._timeout, lambda _: None)

    async def _running_host(self) -> Host:
        lost = self._host
        if lost is not None and lost.alive:
            return lost
        # Before anything is awaited: whoever asks meanwhile gets the same one.
        host = self._host = Host("the metric")
        self._imported = set()
        await self._load(host)
        if lost is not None:
            await lost.kill()
        return host

    async def _load(self, host: Host) -> None:
        host.listen(self._on_console)
        await host.load(None, None, time.monotonic(), IMPORT_TIMEOUT)

    async def close(self) -> None:
        if self._host is not None:
            await self._host.close()


def _dump(invocations: Sequence[Invocation]) -> list[Json]:
    return [one.model_dump(mode="json", exclude_none=True) for one in invocations]


def _error(metric: EvalMetric, error: ErrorInfo) -> MetricResult:
    return MetricResult(
        metric.metric_name,
        None,
        metric.threshold,
        Status.ERROR,
        reason=str(error),
        error=error,
    )
