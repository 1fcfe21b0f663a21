"""Outcomes by other thresholds: they follow from scores that are known, and no result is scored for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from evaltui.core.metrics.metric import effective_threshold
from evaltui.core.metrics.normal_config import score_alike
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.events import Event
from evaltui.core.model.outcome import CaseResult, Status
from evaltui.core.model.stored_cases import StoredCase
from evaltui.core.secrets import Secrets
from evaltui.workbench.kept_results import ResultInFile, ResultsInLog, Scores
from evaltui.workbench.scoring_again import actual_of, needs_masking, score_now
from evaltui.workbench.state import CaseOutcome

# Metrics that pass where their score is not below the threshold, which has no part in the score.
_BY_SCORE = ("tool_trajectory_avg_score", "response_match_score")
# What an index has is rounded; 0 and 1 are exact, since no text has a million words.
_ROUNDED = 1e-6
# More results than are seen at once.
_MOST_READ = 500


class OtherThresholds:
    """Outcomes by a config that follow from those by another one."""

    def __init__(self, config: EvalConfig, secrets: Secrets) -> None:
        self._config = config
        self._secrets = secrets
        self._plain, self._thresholds = _without_thresholds(config), _thresholds(config)
        metrics = [one.metric_name for one in config.metrics() if one.custom_function_path is None]
        self._by_score = {name for name in _BY_SCORE if name in metrics and name in self._thresholds}
        # With the config, so that no other one gets its number.
        self._known: dict[int, tuple[EvalConfig, Mapping[str, float] | None]] = {}
        # With an outcome, so that its scores stay the ones with this number.
        self._statuses: dict[tuple[int, int, Status], tuple[CaseOutcome, Status | None]] = {}
        self._files: dict[ResultsInLog, ScoredWhenRead] = {}

    def outcome(self, scored: CaseOutcome, stored: StoredCase) -> CaseOutcome | None:
        """How a case comes out that was scored by `stored`; None where only scoring it again tells."""
        kept = scored.kept
        if not isinstance(kept, ResultInFile) or kept.runs != 1 or scored.undecided:
            return None
        is_followed = isinstance(kept.file, ScoredWhenRead)
        run = kept.file.as_run(kept.place) if isinstance(kept.file, ScoredWhenRead) else scored
        if not isinstance(run.kept, ResultInFile) or not isinstance(file := run.kept.file, ResultsInLog):
            return None
        if is_followed and score_alike(self._config, run.config):
            return self._scored(scored, run.kept, stored)
        # Most results share their scores with others.
        key = id(run.config), id(run.kept.scores), run.kept.status
        if key not in self._statuses:
            self._statuses[key] = run, self._status(run.config, run.kept)
        status = self._statuses[key][1]
        if status is None or needs_masking(stored, self._secrets):
            return None
        if file not in self._files:
            self._files[file] = ScoredWhenRead(file, self._config, self._secrets)
        new = self._files[file].result_of(run, run.kept, status)
        return self._scored(scored, new, stored)

    def _scored(self, scored: CaseOutcome, kept: ResultInFile, stored: StoredCase) -> CaseOutcome:
        ran = scored.ran or (scored.stored, scored.config)
        return replace(scored, kept=kept, stored=stored, config=self._config, ran=ran, unscored=False)

    def _status(self, config: EvalConfig, kept: ResultInFile) -> Status | None:
        """The status of a result by the thresholds, `config` being what it was scored by."""
        if id(config) not in self._known:
            is_alike = _without_thresholds(config) == self._plain
            self._known[id(config)] = config, _thresholds(config) if is_alike else None
        before = self._known[id(config)][1]
        if before is None or kept.status not in (Status.PASSED, Status.FAILED):
            return None
        judged = {name for name in before if before[name] != self._thresholds[name]}
        if not judged.issubset(self._by_score) or not judged.issubset(kept.scores):
            return None
        if kept.status is Status.FAILED:
            # What else failed, or could not be evaluated, is not known.
            judged = {name for name in self._by_score if name in kept.scores}
        passed = [_passes(kept.scores[name], self._thresholds[name]) for name in judged]
        if False in passed:
            return Status.FAILED
        return None if None in passed or kept.status is Status.FAILED else Status.PASSED


class ScoredWhenRead:
    """Results of a log as they come out by other thresholds: each is scored again when it is asked for."""

    def __init__(self, file: ResultsInLog, config: EvalConfig, secrets: Secrets) -> None:
        self.log = file.log
        self._file = file
        self._config = config
        self._secrets = secrets
        self._as_run: dict[int, CaseOutcome] = {}

    def result_of(self, run: CaseOutcome, kept: ResultInFile, status: Status) -> ResultInFile:
        """The result of a case that is known to come out so; `run` is how it came out in its run."""
        self._as_run[kept.place] = run
        passed = status is Status.PASSED
        verdict = _shared(kept.verdict._replace(status=status, passed=int(passed), policy_met=passed))
        return ResultInFile(self, kept.place, verdict, kept.scores, kept.seconds, kept.tokens, kept.costs)

    def as_run(self, place: int) -> CaseOutcome:
        """How a case came out in its run."""
        return self._as_run[place]

    def scores(self, places: Collection[int]) -> dict[int, Scores]:
        """See `ResultFile`."""
        return self._file.scores(places)

    def events(self, place: int) -> dict[int, list[Event]] | str:
        """See `ResultFile`."""
        return self._file.events(place)

    def is_short(self, place: int) -> bool:
        """See `ResultFile`."""
        return self._file.is_short(place)

    def result(self, place: int) -> CaseResult | str:
        """See `ResultFile`."""
        return _result_in(self, place)

    def read(self, place: int) -> CaseResult | str:
        """As `result`, scored in any case."""
        run, events = self._as_run[place], self._file.events(place)
        if isinstance(events, str) or run.problem:
            return run.problem or str(events)
        return score_now(run, actual_of(events), run.stored, self._config, self._secrets).result


@lru_cache(_MOST_READ)
def _result_in(file: ScoredWhenRead, place: int) -> CaseResult | str:
    return file.read(place)


_shared = lru_cache(64)(lambda verdict: verdict)


def _passes(score: float, threshold: float) -> bool | None:
    """None where the score is too near to tell, as it is rounded."""
    if abs(score - threshold) < _ROUNDED and score not in (0.0, 1.0):
        return None
    return score >= threshold


def _thresholds(config: EvalConfig) -> dict[str, float]:
    found = {metric.metric_name: effective_threshold(metric) for metric in config.metrics()}
    return {name: threshold for name, threshold in found.items() if threshold is not None}


def _without_thresholds(config: EvalConfig) -> Any:
    """All that a config says of scoring besides them."""
    without: dict[str, Any] = {"threshold": None}
    metrics = [
        metric.model_copy(
            update={**without, "criterion": metric.criterion and metric.criterion.model_copy(update=without)}
        )
        for metric in config.metrics()
    ]
    data = config.scoring()
    block = {name: value for name, value in data.pop("evaltui", {}).items() if name != "criteria"}
    return metrics, sorted(_thresholds(config)), {**data, "criteria": None}, block
