"""The results of a set in the shape that google-adk keeps them in, for `adk web` and other readers.

The shape is `EvalSetResult` of google-adk 2.13 without what its reader fills in. Of why something failed it
has a place only for what judges found: the rest is in the other reports.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from io import SEEK_END
from tempfile import SpooledTemporaryFile
from typing import Any

from evaltui.core.compare.judged import Finding, findings, findings_in, was_judged
from evaltui.core.metrics.registry import info_of
from evaltui.core.model.base_model import dump
from evaltui.core.model.eval_set import DEFAULT_USER_ID, EvalCase, Invocation
from evaltui.core.model.outcome import CaseResult, MetricResult, RepeatResult, Status
from evaltui.core.model.stored_cases import ids_and_turns
from evaltui.core.secrets import Secrets
from evaltui.runner.plan import SetPlan
from evaltui.runs.adk_reader import EXPLANATION
from evaltui.runs.adk_results import OWN_SESSIONS
from evaltui.text.values import valid_json_text

Json = dict[str, Any]

_PASSED, _FAILED, _NOT_EVALUATED, _INFORMATIONAL = 1, 2, 3, 4
# As in ADK, a run that raised failed, and a metric that raised was not evaluated.
_OF_RUN = {Status.PASSED: _PASSED, Status.FAILED: _FAILED, Status.ERROR: _FAILED}
_OF_METRIC = {Status.PASSED: _PASSED, Status.FAILED: _FAILED, Status.INFORMATIONAL: _INFORMATIONAL}
# Bytes of packed entries from which on they are in a file.
_IN_MEMORY = 1 << 20
# Bytes in which the length of entries is written.
_LENGTH = 8
# What ADK refuses in the id of a result, and what no file name should have.
_NOT_IN_IDS = re.compile(r"[/\\\x00-\x1f\x7f\ud800-\udfff]")


def result_id_of(app_name: str, eval_set_id: str, created: float) -> str:
    """The id of a result: ADK's, without what a file name cannot have."""
    return _NOT_IN_IDS.sub("_", f"{app_name}_{eval_set_id}_{created}")


class AdkResult:
    """The results of one set, of which each repeat of a case is an entry, as with ADK's `num_runs`.

    Made while cases are finished, in any order. The entries are kept packed, those of many cases in a file
    that nobody else sees: all that the agent did would be too much. What is masked are texts, not the ids of
    the set and its cases. `add` and `pieces` raise OSError where that file cannot be written or read.
    """

    def __init__(self, eval_set: SetPlan, secrets: Secrets) -> None:
        self._eval_set_id = eval_set.eval_set_id
        self._cases = _CasesById(eval_set.cases)
        config = eval_set.config.scoring()
        self._criteria: Json = config.get("criteria", {}) | config.get("evaltui", {}).get("criteria", {})
        self._secrets = secrets
        self._packed = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115
        # Where the entries of each case begin in it: their length, and they.
        self._places: dict[str, int] = {}

    def add(self, case: CaseResult) -> None:
        # Asked for once: a model of it may have to be made.
        expected = self._cases.get(case.eval_id)
        entries = (self._entry(case.eval_id, expected, repeat) for repeat in case.repeats)
        packed = zlib.compress("\n".join(entries).encode(), 1)
        self._places[case.eval_id] = self._packed.seek(0, SEEK_END)
        self._packed.write(len(packed).to_bytes(_LENGTH) + packed)

    def close(self) -> None:
        """Forget the entries."""
        self._packed.close()

    @property
    def is_empty(self) -> bool:
        return not self._places

    def document(self, app_name: str, created: float) -> tuple[str, str]:
        """Its id, and its JSON text (see `pieces`)."""
        result_id, pieces = self.pieces(app_name, created)
        return result_id, "".join(pieces)

    def pieces(self, app_name: str, created: float) -> tuple[str, Iterator[str]]:
        """Its id, and its JSON text in pieces, with the cases in the order of the set.

        `created` is seconds since 1970. The id is ADK's `{app}_{set}_{time}` with other characters for those
        that a file name cannot have, so that the file can be found by it. Sessions end with the agent's
        process: the session ids name none that a server could know.
        """
        result_id = result_id_of(app_name, self._eval_set_id, created)
        head = {
            "eval_set_result_id": result_id,
            "eval_set_result_name": result_id,
            "eval_set_id": self._eval_set_id,
        }
        return result_id, self._pieces(valid_json_text(head), created)

    def _pieces(self, head: str, created: float) -> Iterator[str]:
        yield f'{head[:-1]}, "eval_case_results": ['
        order = {eval_id: number for number, eval_id in enumerate(self._cases)}
        number = 0
        for eval_id in sorted(self._places, key=lambda eval_id: order.get(eval_id, len(order))):
            self._packed.seek(self._places[eval_id])
            size = int.from_bytes(self._packed.read(_LENGTH))
            for entry in zlib.decompress(self._packed.read(size)).decode().split("\n"):
                number += 1
                before = ", " if number > 1 else ""
                yield f'{before}{entry[:-1]}, "session_id": "{OWN_SESSIONS}{created}-{number}"}}'
        yield f'], "creation_timestamp": {created}}}'

    def _entry(self, eval_id: str, case: EvalCase | None, repeat: RepeatResult) -> str:
        entry = _run(self._eval_set_id, self._criteria, eval_id, case, repeat)
        ids = {"eval_set_id": entry["eval_set_id"], "eval_id": eval_id}
        return self._secrets.in_json(valid_json_text(entry), lambda data: valid_json_text(data | ids))


class _CasesById(Mapping[str, EvalCase]):
    """Cases by their ids; a model of a stored one is made when it is asked for."""

    def __init__(self, cases: Sequence[EvalCase]) -> None:
        self._cases = cases
        self._numbers = {eval_id: number for number, (eval_id, _) in enumerate(ids_and_turns(cases))}

    def __getitem__(self, eval_id: str) -> EvalCase:
        return self._cases[self._numbers[eval_id]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)


def _run(eval_set_id: str, criteria: Json, eval_id: str, case: EvalCase | None, repeat: RepeatResult) -> Json:
    return {
        "eval_set_id": eval_set_id,
        "eval_id": eval_id,
        "final_eval_status": _OF_RUN.get(repeat.status, _NOT_EVALUATED),
        "overall_eval_metric_results": [
            _metric(criteria, metric, metric.score, metric.status)
            | _details(metric)
            | _overall_rubrics(metric)
            for metric in repeat.metrics
        ],
        "eval_metric_result_per_invocation": list(_turns(criteria, case, repeat)),
        "user_id": repeat.user_id or _user(case),
    }


def _user(case: EvalCase | None) -> str:
    session = case.session_input if case else None
    return session.user_id if session and session.user_id else DEFAULT_USER_ID


def _turns(criteria: Json, case: EvalCase | None, repeat: RepeatResult) -> Iterator[Json]:
    expected: list[Invocation] = (case.conversation or []) if case else []
    for index, actual in enumerate(repeat.actual):
        turn: Json = {"actual_invocation": dump(actual)}
        own = expected[index].rubrics if index < len(expected) else None
        # ADK copies them there, and its readers look for their texts nowhere else.
        if rubrics := [*((case.rubrics if case else None) or []), *(own or [])]:
            turn["actual_invocation"]["rubrics"] = [dump(rubric) for rubric in rubrics]
        if index < len(expected):
            turn["expected_invocation"] = dump(expected[index])
        turn["eval_metric_results"] = [
            _metric(criteria, metric, scored.score, scored.status) | _rubrics(findings_in(metric, index))
            for metric in repeat.metrics
            if len(metric.per_invocation) == len(repeat.actual)
            for scored in [metric.per_invocation[index]]
        ]
        yield turn


def _metric(criteria: Json, metric: MetricResult, score: float | None, status: Status) -> Json:
    entry: Json = {"metric_name": metric.name, "eval_status": _OF_METRIC.get(status, _NOT_EVALUATED)}
    if score is not None:
        entry["score"] = score
    if metric.threshold is not None:
        entry["threshold"] = metric.threshold
    criterion = criteria.get(metric.name)
    if isinstance(criterion, dict):
        entry["criterion"] = criterion
    return entry


def _details(metric: MetricResult) -> Json:
    details = {name: value for name, value in metric.details.items() if value is not None}
    key = info_of(metric.name).adk_details
    return {"details": {key: details}} if details and key else {}


def _rubrics(findings: Sequence[Finding]) -> Json:
    scores = [
        _rubric_score(_rubric_id(finding), finding.judgement.score, finding.why) for finding in findings
    ]
    return {"details": {"rubric_scores": scores}} if scores else {}


def _overall_rubrics(metric: MetricResult) -> Json:
    """The mean of each rubric over the turns, with the reasons of the turns, as in ADK."""
    if not was_judged(metric):
        return {}
    by_id: dict[str, list[Finding]] = {}
    for finding in findings(metric):
        by_id.setdefault(_rubric_id(finding), []).append(finding)
    scores = []
    for rubric_id, of_rubric in by_id.items():
        judged = (finding.judgement.score for finding in of_rubric)
        rubric_scores = [score for score in judged if score is not None]
        mean = sum(rubric_scores) / len(rubric_scores) if rubric_scores else None
        scores.append(_rubric_score(rubric_id, mean, _reasons(of_rubric)))
    return {"details": {"rubric_scores": scores}}


def _reasons(findings: Sequence[Finding]) -> str:
    if len(findings) == 1:
        return findings[0].why
    return "\n".join(f"turn {finding.turn + 1}, {finding.word}: {finding.why}" for finding in findings)


def _rubric_id(finding: Finding) -> str:
    own = finding.judgement.subject if finding.subject == "sentence" else ""
    return finding.judgement.id or own or EXPLANATION


def _rubric_score(rubric_id: str, score: float | None, rationale: str) -> Json:
    entry: Json = {"rubric_id": rubric_id}
    if rationale:
        entry["rationale"] = rationale
    return entry if score is None else entry | {"score": score}
