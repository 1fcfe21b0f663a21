"""Results as run logs keep them: as JSON without what says nothing and without what is said already."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter

from evaltui.core.model.eval_set import Invocation
from evaltui.core.model.outcome import MetricResult, RepeatResult

Json = dict[str, Any]

_REPEAT = TypeAdapter(RepeatResult)


def repeat_to_json(result: RepeatResult) -> Json:
    """One run of a case, without what the agent did: its events stand beside it in the log.

    What JSON has no word for becomes null; of keys, what UTF-8 has none for becomes U+FFFD.
    """
    data: Json = _REPEAT.dump_python(
        result, mode="json", exclude_defaults=True, exclude_none=True, exclude={"actual"}
    )
    for metric in data.get("metrics", ()):
        if "details" in metric:
            metric["details"] = {key: value for key, value in metric["details"].items() if value is not None}
        for turn in metric.get("per_invocation", ()):
            for judgement in turn.get("judgements", ()):
                _leave_out_rationale(judgement)
    for both in _compared(data):
        # By their text: 1 == 1.0 == True, and what was said must be told as it was.
        if "expected" in both and "actual" in both and repr(both["expected"]) == repr(both["actual"]):
            both["both"] = both.pop("expected")
            del both["actual"]
    return data


def repeat_from_json(data: Json, actual: Sequence[Invocation] = ()) -> RepeatResult:
    """What `repeat_to_json` was given, with what the agent did. Raises ValueError for anything else."""
    try:
        for both in _compared(data):
            shared = both.pop("both", None)
            both.setdefault("expected", shared)
            both.setdefault("actual", shared)
        for turn in data.get("turns", ()):
            for diff in turn["calls"]:
                for call in (diff["expected"], diff["actual"]):
                    if call is not None:
                        call.setdefault("args", None)
        for failed in (data, *data.get("metrics", ())):
            if "error" in failed:
                # Earlier versions did not tell.
                failed["error"].setdefault("kind", None)
        for metric in data.get("metrics", ()):
            metric.setdefault("score", None)
            metric.setdefault("threshold", None)
            for turn in metric.get("per_invocation", ()):
                turn.setdefault("score", None)
                for judgement in turn.get("judgements", ()):
                    for scored in (judgement, *judgement.get("votes", ())):
                        scored.setdefault("score", None)
                    judgement.setdefault("rationale", _rationale_of_votes(judgement))
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"not the result of a run: {error!r}") from error
    repeat = _REPEAT.validate_python(data)
    return replace(repeat, actual=tuple(actual), metrics=tuple(map(_shared, repeat.metrics)))


def scores_in(data: Json) -> Iterator[tuple[str, float | None]]:
    """The name and the score of each metric of what `repeat_to_json` gave, without the rest being looked at.

    Raises what looking into something else raises: AttributeError, KeyError, TypeError, ValueError.
    """
    for metric in data.get("metrics", ()):
        score = metric.get("score")
        yield metric["name"], None if score is None else float(score)


# Of thousands of cases, most metrics say the same: these are one object.
_MOST_SHARED = 1000
_shared_metrics: dict[tuple[Any, ...], MetricResult] = {}


def _shared(metric: MetricResult) -> MetricResult:
    """The metric, or one that is equal."""
    if metric.error is not None or metric.judge is not None:
        return metric
    said = (metric.name, metric.status, metric.score, metric.threshold, metric.reason)
    marks = (metric.lower_is_better, metric.is_optional)
    key = (*said, *marks, metric.per_invocation, tuple(metric.details.items()))
    if len(_shared_metrics) >= _MOST_SHARED:
        _shared_metrics.clear()
    return _shared_metrics.setdefault(key, metric)


def _leave_out_rationale(judgement: Json) -> None:
    """The rationale of a judgement is nearly always that of one of its votes, and long."""
    own = judgement.pop("rationale", "")
    if own != _rationale_of_votes(judgement):
        judgement["rationale"] = own


def _rationale_of_votes(judgement: Json) -> str:
    """That of the first vote with the same score, "" where there is none."""
    score = judgement.get("score")
    rationales = (
        vote.get("rationale", "") for vote in judgement.get("votes", ()) if vote.get("score") == score
    )
    return next(rationales, "")


def _compared(data: Json) -> Iterator[Json]:
    """Everything in a result that has an expected and an actual side."""
    for turn in data.get("turns", ()):
        for diff in turn["calls"]:
            yield diff
            yield from diff.get("args", ())
        yield from turn.get("intermediate", ())
        yield turn["response"]
    yield from data.get("state", ())
