"""Sending conversations as traces to an OTLP/HTTP endpoint, one request each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import httpx
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt, wait_exponential_jitter

from evaltui.agents.exception_kinds import asked_wait
from evaltui.commands.output import write_stderr
from evaltui.runs.export import ConversationTraces
from evaltui.text.figures import counted, show_duration, show_number
from evaltui.text.values import cut, visible
from evaltui.traces.writing.otlp import otlp_json

_TIMEOUT = 30.0
# What OTLP calls retryable.
_MAY_PASS = (429, 502, 503, 504)
# What is wrong with one request says nothing of the next one.
_OF_ONE_REQUEST = (400, 413)
_ATTEMPTS = 5
_MAX_WAIT = 60.0
_MAX_ANSWER_LENGTH = 300


class NotAcceptedError(Exception):
    """The endpoint accepts nothing more; the message gives the reason."""


@dataclass
class Sending:
    """Sends spans to an endpoint, and counts the accepted and the refused ones.

    A request that it has no time for (429, 502, 503, 504) is sent again, after the time that it asks for.
    """

    url: str
    headers: Mapping[str, str]
    version: str
    """The version of evaltui."""
    conversations: int = 0
    """Number of conversations of which no span was refused."""
    spans: int = 0
    """Number of accepted spans."""
    refused: list[str] = field(default_factory=list)
    """A sentence for each conversation with refused spans."""

    @property
    def in_words(self) -> str:
        """`2 conversations, 16 spans accepted`"""
        return f"{counted(self.conversations, 'conversation')}, {counted(self.spans, 'span')} accepted"

    def send(self, groups: Iterable[ConversationTraces]) -> None:
        """Raises NotAcceptedError."""
        headers = {**self.headers, "content-type": "application/json"}
        try:
            with httpx.Client(timeout=_TIMEOUT, headers=headers) as client:
                for group in groups:
                    self._send_one(client, group)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise NotAcceptedError(_in_words(error)) from error

    def _send_one(self, client: httpx.Client, group: ConversationTraces) -> None:
        resource, spans = group
        content = json.dumps(otlp_json([group], self.version))
        retrying = Retrying(
            retry=retry_if_exception(self._may_pass),
            stop=stop_after_attempt(_ATTEMPTS),
            wait=_wait,
            before_sleep=self._report_retry,
            reraise=True,
        )
        named = str(resource["agentevals.session_name"])
        try:
            answer = retrying(_post, client, self.url, content)
        except httpx.HTTPStatusError as error:
            if error.response.status_code not in _OF_ONE_REQUEST:
                raise
            self.refused.append(f"{named}: {_in_words(error)}")
            return
        rejected, why = _rejected(answer)
        self.spans += len(spans) - rejected
        self.conversations += not rejected
        if rejected:
            count = f"{show_number(rejected)} of {counted(len(spans), 'span')}"
            self.refused.append(f"{named}: {count} rejected: {why or 'no reason'}")
        elif why:
            write_stderr(f"evaltui export: {visible(self.url)}: {visible(named)}: {visible(why)}")

    def _may_pass(self, error: BaseException) -> bool:
        if isinstance(error, httpx.HTTPStatusError):
            is_soon = (asked_wait(error) or 0.0) <= _MAX_WAIT
            return error.response.status_code in _MAY_PASS and is_soon
        # An endpoint that was there will be there again; spans that it has are known by their ids.
        return self.spans > 0 and isinstance(error, httpx.NetworkError | httpx.RemoteProtocolError)

    def _report_retry(self, state: RetryCallState) -> None:
        assert state.outcome is not None
        error, wait = state.outcome.exception(), show_duration(state.upcoming_sleep)
        write_stderr(f"evaltui export: {visible(self.url)}: {_in_words(error)}; sent again in {wait}")


def _post(client: httpx.Client, url: str, content: str) -> httpx.Response:
    return client.post(url, content=content).raise_for_status()


def _wait(state: RetryCallState) -> float:
    assert state.outcome is not None
    error = state.outcome.exception()
    requested = asked_wait(error) if error else None
    return wait_exponential_jitter(1.0, _MAX_WAIT)(state) if requested is None else requested


def _in_words(error: BaseException | None) -> str:
    if not isinstance(error, httpx.HTTPStatusError):
        return visible(str(error) or type(error).__name__)
    answer = error.response
    body = cut(" ".join(answer.text.split()), _MAX_ANSWER_LENGTH)
    return visible(f"{answer.status_code} {answer.reason_phrase} {body}".rstrip())


def _rejected(answer: httpx.Response) -> tuple[int, str]:
    """The number of rejected spans in a response, and the endpoint's message."""
    try:
        partial = answer.json().get("partialSuccess") or {}
        rejected, why = int(partial.get("rejectedSpans") or 0), str(partial.get("errorMessage") or "")
    except (AttributeError, TypeError, ValueError):
        # What is no JSON tells of no span that was rejected.
        return 0, ""
    return rejected, cut(" ".join(why.split()), _MAX_ANSWER_LENGTH)
