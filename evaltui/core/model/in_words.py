"""Results in a few words, for a console and for tests that fail."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from evaltui.core.model.errors import ErrorInfo
from evaltui.text.figures import show_scores


class Scored(Protocol):
    """A `MetricResult`, as far as it is looked at here."""

    @property
    def name(self) -> str: ...

    @property
    def status(self) -> str: ...

    @property
    def score(self) -> float | None: ...

    @property
    def threshold(self) -> float | None: ...

    @property
    def lower_is_better(self) -> bool: ...


def metric_in_words(metric: Scored) -> str:
    """`response_match_score 0.62 < 0.80`"""
    return f"{metric.name} {show_scores(metric.score, metric.threshold, metric.lower_is_better)}"


def against(error: ErrorInfo | None, metrics: Iterable[Scored]) -> Iterator[str]:
    """What speaks against a result, in a few words each."""
    if error is not None:
        yield str(error)
    for one in metrics:
        if one.status not in ("PASSED", "INFORMATIONAL"):
            yield metric_in_words(one)
