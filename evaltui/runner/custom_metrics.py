"""Custom metric functions, called in a host of their own: what they do there harms no case."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from evaltui.core.config import EvalMetric
from evaltui.core.evalset import Invocation
from evaltui.core.events import Json
from evaltui.core.metrics.custom import metric_result_from_custom
from evaltui.core.outcome import ErrorInfo, MetricResult, Status
from evaltui.files.workspace import agent_folder
from evaltui.runner.supervisor import (
    IMPORT_TIMEOUT,
    AgentBrokenError,
    Host,
    HostLostError,
    OnConsole,
    RequestFailedError,
)


class MetricHost:
    """Started with the first custom metric, and again after one that brought it down."""

    def __init__(self, agent_dir: Path, timeout: float, on_console: OnConsole) -> None:
        self._agent_dir = agent_dir
        self._timeout = timeout
        self._on_console = on_console
        self._host: Host | None = None

    async def score(
        self,
        metric: EvalMetric,
        actual: Sequence[Invocation],
        expected: Sequence[Invocation] | None,
    ) -> MetricResult:
        """The function's verdict; whatever it does wrong is an ERROR of this metric, with its traceback."""
        request = {
            "op": "metric",
            "agent_folder": str(agent_folder(self._agent_dir).resolve()),
            "path": metric.custom_function_path,
            "metric": metric.model_dump(mode="json", exclude={"custom_function_path"}),
            "actual": _dump(actual),
            "expected": None if expected is None else _dump(expected),
        }
        try:
            host = await self._running_host()
            answer = await host.request(request, self._timeout, lambda _: None)
        except (AgentBrokenError, RequestFailedError, HostLostError) as failed:
            return _error(metric, failed.error)
        result = metric_result_from_custom(metric, answer["result"], len(actual))
        return replace(result, threshold=metric.threshold)

    async def _running_host(self) -> Host:
        if self._host is None or not self._host.alive:
            self._host = Host()
            self._host.listen(self._on_console)
            await self._host.load(None, None, time.monotonic(), IMPORT_TIMEOUT)
        return self._host

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
