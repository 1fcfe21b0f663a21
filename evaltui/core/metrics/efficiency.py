"""Informational metrics of a turn's effort: tool calls, model calls, tokens, seconds.

The values are those of google-adk 2.13 (`_efficiency_evaluators`), but None in place of 0 for unknown calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evaltui.core.metrics.declaration import MetricInfo, metric
from evaltui.core.metrics.metric import MetricInput, left_out_turns, not_evaluated, unscored_turn
from evaltui.core.model.eval_set import Invocation, InvocationEvents, tool_calls
from evaltui.core.model.outcome import InvocationScore, MetricResult, Status
from evaltui.core.model.spending import known_sum

Parts = dict[str, float | None]


@metric(MetricInfo("Tool calls per turn.", gates=False, interval=None, summed_as="tool calls"))
def tool_call_count_v1(inputs: MetricInput) -> MetricResult:
    """Tool calls per turn; None for a turn with unknown calls, which ADK counts as none."""
    return _report(inputs, lambda turn: (_tool_calls(turn, inputs.as_adk), {}), _mean_of_known)


@metric(MetricInfo("Model calls per turn.", gates=False, interval=None, summed_as="model calls"))
def inference_call_count_v1(inputs: MetricInput) -> MetricResult:
    """Model calls per turn; None for a turn that was not recorded event by event.

    Also None where no event reports a model call, unless the models took no time; ADK counts 0 calls there.
    """
    return _report(inputs, lambda turn: (_model_calls(turn, inputs.as_adk), {}), _mean_of_known)


@metric(
    MetricInfo(
        "Tokens per turn, input and output.",
        gates=False,
        interval=None,
        summed_as="tokens",
        adk_details="token_usage_details",
    )
)
def token_usage_v1(inputs: MetricInput) -> MetricResult:
    """Tokens per turn, with kinds of tokens in `details`; see `token_usage`."""
    # A model leaves out the kinds that it did not spend, so a turn without one counts as zero in the mean.
    return _report(inputs, lambda turn: _total(token_usage(turn), "total_tokens"), _mean_over_all)


@metric(
    MetricInfo(
        "Seconds per turn.", gates=False, interval=None, summed_as="time", adk_details="duration_details"
    )
)
def invocation_duration_v1(inputs: MetricInput) -> MetricResult:
    """Seconds per turn over the turns with a known time, with its parts in `details`."""

    def average(values: Sequence[float | None]) -> float | None:
        mean = _mean_of_known(values)
        return None if mean is None else round(mean, 3)

    return _report(inputs, lambda turn: _total(duration_split(turn), "total_seconds"), average)


def token_usage(invocation: Invocation) -> Parts:
    """Tokens of a turn by kind.

    The total is input and output, the input is prompt and tool use, the output is candidates and reasoning.
    """
    data = invocation.intermediate_data
    prompt: int | None = None
    cached: int | None = None
    tool_use: int | None = None
    candidates: int | None = None
    reasoning: int | None = None
    for event in data.invocation_events if isinstance(data, InvocationEvents) else ():
        if (usage := event.usage_metadata) is not None:
            prompt = known_sum(prompt, usage.prompt_token_count)
            cached = known_sum(cached, usage.cached_content_token_count)
            tool_use = known_sum(tool_use, usage.tool_use_prompt_token_count)
            candidates = known_sum(candidates, usage.candidates_token_count)
            reasoning = known_sum(reasoning, usage.thoughts_token_count)
    into, out = known_sum(prompt, tool_use), known_sum(candidates, reasoning)
    return {
        "total_tokens": known_sum(into, out),
        "input_tokens": into,
        "prompt_tokens": prompt,
        "cached_tokens": cached,
        "tool_use_tokens": tool_use,
        "output_tokens": out,
        "candidates_tokens": candidates,
        "reasoning_tokens": reasoning,
    }


def duration_split(invocation: Invocation) -> Parts:
    """Seconds of a turn by part: waiting for models, in tools, and the rest in the framework."""
    total, model, tool = invocation.duration, invocation.model_duration, invocation.tool_duration
    if total is None:
        model = tool = None
    framework = None
    if total is not None and model is not None and tool is not None:
        framework = round(max(total - model - tool, 0.0), 3)
    return {
        "total_seconds": total,
        "model_seconds": model,
        "tool_seconds": tool,
        "framework_seconds": framework,
    }


def _report(
    inputs: MetricInput,
    measure: Callable[[Invocation], tuple[float | None, Parts]],
    average: Callable[[Sequence[float | None]], float | None],
) -> MetricResult:
    if inputs.metric.threshold is not None or inputs.metric.criterion is not None:
        return not_evaluated(
            inputs.metric,
            "reports a value that never passes or fails, so it takes no threshold; remove it from the"
            " config's criteria, it is always reported",
        )
    without = left_out_turns(inputs)
    turns: list[InvocationScore] = []
    values: list[float | None] = []
    splits: list[Parts] = []
    for number, actual in enumerate(inputs.actual):
        if number in without:
            turns.append(unscored_turn(without[number]))
            continue
        value, split = measure(actual)
        turns.append(InvocationScore(value, Status.INFORMATIONAL))
        values.append(value)
        splits.append(split)
    return MetricResult(
        inputs.metric.metric_name,
        average(values),
        None,
        Status.INFORMATIONAL,
        per_invocation=tuple(turns),
        details=_averages(splits, average),
    )


def _averages(
    splits: Sequence[Parts], average: Callable[[Sequence[float | None]], float | None]
) -> dict[str, float | None]:
    """The averages over the turns by part."""
    if len(splits) == 1:
        # Most cases have one turn, and most of its parts are unknown.
        return {name: None if part is None else average((part,)) for name, part in splits[0].items()}
    return {name: average([split[name] for split in splits]) for name in (splits[0] if splits else {})}


def _tool_calls(invocation: Invocation, as_adk: bool) -> float | None:
    data = invocation.intermediate_data
    return None if data is None and not as_adk else float(len(tool_calls(data)))


def _model_calls(invocation: Invocation, as_adk: bool) -> float | None:
    data = invocation.intermediate_data
    if not isinstance(data, InvocationEvents):
        return None
    events = data.invocation_events
    reported = sum(event.usage_metadata is not None or event.model_version is not None for event in events)
    # Models whose time is unknown or above 0 may have been called although no event reports a call.
    is_unknown = not reported and invocation.model_duration != 0.0
    return None if is_unknown and not as_adk else float(reported)


def _total(split: Parts, name: str) -> tuple[float | None, Parts]:
    return split[name], split


def _mean_over_all(values: Sequence[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return sum(numbers) / len(values) if numbers else None


def _mean_of_known(values: Sequence[float | None]) -> float | None:
    return _mean_over_all([value for value in values if value is not None])
