"""The judges of a run: asked a few questions at once by scoring hosts, recorded and replayed."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

from evaltui.agents.call_recorder import CallRecorder, ModelExchange
from evaltui.agents.errors import (
    AgentBrokenError,
    HostLostError,
    RequestFailedError,
    RunStoppedError,
    error_from_json,
)
from evaltui.agents.exception_kinds import kind_of
from evaltui.core.cost.metering import MeteredCall, tokens_of
from evaltui.core.metrics.judges.judge import Answer, JudgeFailedError, Question
from evaltui.core.model.criteria import JudgeModelOptions
from evaltui.core.model.errors import NOT_RECORDED, ErrorInfo, ErrorKind
from evaltui.core.model.events import Json
from evaltui.core.recordings.entry import JUDGE_OF, JsonRequest
from evaltui.runner.scoring import ScoringHosts, ScoringKind


class Judges:
    """Asks the questions of all cases, of each metric at most as many at once as its options allow."""

    def __init__(self, hosts: ScoringHosts) -> None:
        self._hosts = hosts
        self._limits: dict[tuple[str, int], asyncio.Semaphore] = {}

    async def ask(self, question: Question) -> Answer:
        """Raises RequestFailedError, HostLostError, AgentBrokenError or RunStoppedError."""
        options = question.options
        key = question.metric, options.parallelism_limit
        request: Json = {
            "op": "ask",
            "judge": options.judge_model,
            "prompt": question.prompt,
            "config": _config_to_ask(question),
        }
        async with self._limits.setdefault(key, asyncio.Semaphore(options.parallelism_limit)):
            # A `module:callable` of the project stands for a model.
            kind: ScoringKind = "functions" if ":" in options.judge_model else "models"
            reply = await self._hosts.answer(kind, request)
        return Answer(reply["text"], cut_off=reply["cut_off"], usages=tuple(reply["usages"]))


class CaseJudge:
    """The `Judge` of one run of a case."""

    def __init__(self, judges: Judges, recorder: CallRecorder | None) -> None:
        """`recorder` has the recording of the run; None where there is none."""
        self._judges = judges
        self._recorder = recorder
        self._unanswered: Counter[str] = Counter()
        self.is_left = False
        """Whether the run was stopped before every question was answered."""
        self.calls: list[MeteredCall] = []
        """Calls of judges, replayed ones included."""

    @property
    def finished(self) -> set[str]:
        """Metrics with questions, each of which was answered."""
        return {metric for metric, number in self._unanswered.items() if number == 0}

    async def __call__(self, question: Question) -> Answer:
        self._unanswered[question.metric] += 1
        try:
            answer = await self._answer(question, self._exchange(question))
        except JudgeFailedError as failed:
            if failed.was_asked:
                self._meter(question, failed.usages)
            raise
        self._meter(question, answer.usages or (None,), is_replayed=answer.is_replayed)
        self._unanswered[question.metric] -= 1
        return answer

    def _meter(self, question: Question, usages: Sequence[Json | None], *, is_replayed: bool = False) -> None:
        model, tokens = question.options.judge_model, tuple(map(tokens_of, usages))
        self.calls.append(MeteredCall("judge", model, tokens, is_replayed, datetime.now(UTC)))

    def _exchange(self, question: Question) -> ModelExchange | None:
        if self._recorder is None:
            return None
        self._recorder.turn = question.turn
        prompt = {"role": "user", "parts": [{"text": question.prompt}]}
        request = JsonRequest(question.options.judge_model, [prompt], config=_config(question.options) or {})
        return self._recorder.model_call(request, f"{JUDGE_OF}{question.metric}")

    async def _answer(self, question: Question, exchange: ModelExchange | None) -> Answer:
        if exchange is not None and exchange.missed is not None:
            error = ErrorInfo(NOT_RECORDED, str(exchange.missed), kind=ErrorKind.CONFIG)
            raise JudgeFailedError(error, was_asked=False)
        if exchange is not None and exchange.is_replayed:
            return _replayed(exchange)
        try:
            answer = await self._judges.ask(question)
        except RunStoppedError as stopped:
            self.is_left = True
            error = ErrorInfo("RunStoppedError", "the run makes no more model calls", kind=None)
            raise JudgeFailedError(error, was_asked=False) from stopped
        except (AgentBrokenError, RequestFailedError, HostLostError) as failed:
            if exchange is not None and isinstance(failed, RequestFailedError):
                _keep_failure(exchange, failed.error)
            usages = failed.usages if isinstance(failed, RequestFailedError) else ()
            raise JudgeFailedError(failed.error.of_judge, usages=usages) from failed
        if exchange is not None:
            cut_off = {"finish_reason": answer.cut_off} if answer.cut_off else {}
            usage = {"usage": answer.usages[-1]} if answer.usages else {}
            exchange.keep([{"parts": [{"text": answer.text}], **cut_off, **usage}], None)
        return answer


def _replayed(exchange: ModelExchange) -> Answer:
    if exchange.error is not None:
        name = exchange.error["type"].rpartition(":")[2]
        kind = kind_of(error_from_json(exchange.error))
        error = ErrorInfo(name, exchange.error["message"], kind=kind).of_judge
        raise JudgeFailedError(error, was_asked=False)
    parts = [part for response in exchange.responses for part in response["parts"]]
    cut_off = next(
        (response["finish_reason"] for response in exchange.responses if "finish_reason" in response), ""
    )
    usages = tuple(response["usage"] for response in exchange.responses if "usage" in response)
    return Answer("".join(part["text"] for part in parts), is_replayed=True, cut_off=cut_off, usages=usages)


def _keep_failure(exchange: ModelExchange, error: ErrorInfo) -> None:
    # That nobody waited for an answer is none.
    if error.type not in ("TimeoutError", "CancelledError"):
        exchange.keep([], error_from_json({"type": f"builtins:{error.type}", "message": error.message}))


def _config(options: JudgeModelOptions) -> Json | None:
    config = options.judge_model_config
    return None if config is None else config.model_dump(mode="json", exclude_none=True)


def _config_to_ask(question: Question) -> Json | None:
    """The config, with the form of the answer where Gemini takes one and the user asks for no other.

    It is left out of recordings: the question is the same without it.
    """
    config = _config(question.options)
    if question.schema is None or not _takes_schema(question.options.judge_model, config or {}):
        return config
    form = {"response_mime_type": "application/json", "response_schema": question.schema}
    return {**(config or {}), **form}


def _takes_schema(model: str, config: Json) -> bool:
    # Other models that google-genai reaches, such as Gemma, refuse JSON, and Gemini does beside tools.
    name = model.rpartition("/")[2]
    return name.startswith("gemini-") and not (_KEYS_OF_FORM & config.keys())


_KEYS_OF_FORM = {
    "response_mime_type",
    "response_schema",
    "response_json_schema",
    "response_modalities",
    "tools",
}
