"""Scores of results from several runs in one SQLite table, so that thresholds can be tried by queries."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from evaltui.core.metrics.registry import NEED_EVERY_JUDGEMENT
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.config import PassIf
from evaltui.core.model.errors import NOT_RECORDED
from evaltui.core.model.outcome import WORST_FIRST, CaseResult, Status
from evaltui.core.thresholds import Limit
from evaltui.runs.run_file import RunFile, translate_errors
from evaltui.runs.run_tables import RANKED

_RANKS: Mapping[str, int] = {status: rank for rank, status in enumerate(WORST_FIRST)}
_FAILED, _FLAKY, _PASSED = (_RANKS[status] for status in (Status.FAILED, Status.FLAKY, Status.PASSED))
_NOT_EVALUATED = _RANKS[Status.NOT_EVALUATED]
# Of a repeat that is missing in the recording: an error that makes no case flaky.
_MISSING = _RANKS[Status.ERROR] + 0.5
# `scores.rank` is that of a status, NULL where it has no part in the verdict. `cases` has the results that
# tell how a case comes out by the saved and by the edited config, and the one whose scores are shown.
# `decided` has verdicts that do not follow from scores and those of the repeats: of runs that decided, and
# of metrics that may fail or be open by another threshold, because of some judgements without a score.
_TABLES = """
CREATE TABLE repeats (
    result INTEGER, repeat INTEGER, rank INTEGER, PRIMARY KEY (result, repeat)
) WITHOUT ROWID;
CREATE TABLE scores (
    result INTEGER, repeat INTEGER, metric TEXT, score REAL, rank INTEGER,
    PRIMARY KEY (metric, result, repeat)
) WITHOUT ROWID;
CREATE INDEX scores_of_result ON scores (result, repeat, metric, score, rank) WHERE rank IS NOT NULL;
CREATE TABLE decided (result INTEGER PRIMARY KEY, rank INTEGER, passes INTEGER);
CREATE TABLE cases (
    number INTEGER PRIMARY KEY, saved INTEGER, edited INTEGER, shown INTEGER, pass_if
);
CREATE INDEX cases_shown ON cases (shown);
CREATE TABLE wanted (number INTEGER PRIMARY KEY, result INTEGER);
CREATE TABLE limits (
    metric TEXT PRIMARY KEY, threshold REAL, lower INTEGER, removed INTEGER
) WITHOUT ROWID;
"""
_RANK = f"CASE {{}}.status {RANKED} END".format
# What is `wanted` of an attached run.
_FROM_RUN = (
    f"""INSERT INTO repeats SELECT wanted.result, repeat, iif(
        status = '{Status.ERROR}' AND json_extract(there.result, '$.error.type') = '{NOT_RECORDED}',
        {_MISSING}, {_RANK("there")}
    )
    FROM wanted JOIN run.repeats AS there ON case_id = number""",
    f"""INSERT INTO scores SELECT wanted.result, there.repeat, metric, score, iif(
        there.status = '{Status.NOT_EVALUATED}' AND EXISTS (
            SELECT 1 FROM run.repeats AS of, json_each(of.result, '$.metrics') AS one
            WHERE of.case_id = there.case_id AND of.repeat = there.repeat
            AND json_extract(one.value, '$.name') = metric AND json_extract(one.value, '$.is_optional')
        ), NULL, {_RANK("there")}
    )
    FROM wanted JOIN run.scores AS there ON case_id = number""",
    f"""INSERT INTO decided SELECT result, {_RANK("there")}, policy_met
    FROM wanted JOIN run.cases AS there ON id = number
    WHERE json_extract(summary, '$.decision') IS NOT NULL OR EXISTS (
        SELECT 1 FROM run.scores AS open JOIN run.repeats AS of USING (case_id, repeat),
            json_each(of.result, '$.metrics') AS one, json_tree(one.value, '$.per_turn') AS part
        WHERE open.case_id = number AND open.score IS NULL
        AND metric IN ({", ".join(f"'{name}'" for name in NEED_EVERY_JUDGEMENT)})
        AND json_extract(one.value, '$.name') = metric AND part.key = 'score' AND part.atom = 0
    )""",
)
_NEEDED_PASSES = (
    "CASE {0} WHEN 'all' THEN runs WHEN 'majority' THEN runs / 2 + 1 ELSE round({0} * runs, 9) END".format
)
_VERDICTS = f"""
WITH by_repeat AS (
    SELECT number, pass_if, repeats.result, coalesce(
        min(CASE
            WHEN removed THEN NULL
            WHEN threshold IS NULL OR score IS NULL OR scores.rank NOT IN ({_FAILED}, {_PASSED})
            THEN scores.rank
            WHEN iif(lower, score <= threshold, score >= threshold) THEN {_PASSED}
            ELSE {_FAILED}
        END),
        iif(count(metric), {_NOT_EVALUATED}, repeats.rank)
    ) AS rank
    FROM cases JOIN repeats ON repeats.result = cases.{{side}}
    LEFT JOIN scores ON scores.result = repeats.result AND scores.repeat = repeats.repeat
        AND scores.rank IS NOT NULL
    LEFT JOIN limits USING (metric)
    WHERE saved IS NOT NULL AND edited IS NOT NULL {{only}}
    GROUP BY repeats.result, repeats.repeat
), by_case AS (
    SELECT number, result, coalesce(pass_if, :pass_if) AS policy, count(*) AS runs, min(rank) AS worst,
        sum(rank = {_PASSED}) AS passed, sum(rank = {_NOT_EVALUATED}) AS unjudged,
        sum(rank = {_MISSING}) AS missing
    FROM by_repeat GROUP BY result
)
SELECT number,
    coalesce(decided.rank, CASE
        WHEN passed = 0 THEN CAST(worst AS INTEGER)
        WHEN passed < {_NEEDED_PASSES("policy")} AND passed + unjudged >= {_NEEDED_PASSES("policy")}
        THEN {_NOT_EVALUATED}
        WHEN passed < runs - unjudged - missing THEN {_FLAKY}
        WHEN passed < runs - unjudged THEN CAST(worst AS INTEGER)
        ELSE {_PASSED}
    END),
    coalesce(passes, passed >= {_NEEDED_PASSES("policy")})
FROM by_case LEFT JOIN decided USING (result) ORDER BY number
"""
_SHOWN_SCORES = "FROM scores JOIN cases ON shown = result WHERE metric = :metric"
_BY_CASE = f"""
WITH by_case AS (
    SELECT number, count(*) AS runs,
        total(score {{sign}} :threshold) AS now, total(score {{sign}} :saved) AS before
    {_SHOWN_SCORES} GROUP BY result HAVING count(score)
), verdicts AS (
    SELECT number, now >= max(1, {_NEEDED_PASSES(":pass_if")}) AS now,
        before >= max(1, {_NEEDED_PASSES(":pass_if")}) AS before
    FROM by_case
)
"""
# Parts of a metric's interval in which scores are counted together, and the worst cases that are listed.
_PARTS, _MAX_WORST = 400, 200


class CaseRow(NamedTuple):
    """The results that matter for a case; None for none."""

    number: int
    """The number of the case, which orders the cases."""
    saved: int | None = None
    """The result that gives its outcome by the criteria on disk."""
    edited: int | None = None
    """The result that gives its outcome by the edited criteria."""
    shown: int | None = None
    """The result with the scores that are shown."""
    pass_if: PassIf | None = None
    """The pass policy that its run was started with; None for the config's policy."""


class TriedThreshold(NamedTuple):
    """A threshold to try on the scores of a metric."""

    metric: str
    threshold: float | None
    """The threshold; None for a metric without one, whose scores only are read."""
    saved: float | None
    """The threshold on disk."""
    pass_if: PassIf
    interval: tuple[float, float] | None
    """The lowest and the highest possible score; None where there is no highest one."""
    lower_is_better: bool


class Side(NamedTuple):
    """A config that gives the outcomes of cases."""

    column: str
    """The column of its results: `saved` or `edited`."""
    limits: Mapping[str, Limit | None]
    """The thresholds of its metrics."""
    pass_if: PassIf
    """Its pass policy; a run may have another one."""


class Verdict(NamedTuple):
    """The outcome of a case."""

    status: Status
    passes: bool
    """Whether the case passes, a flaky one by its policy."""


@dataclass(frozen=True)
class Trial:
    """The effect of a threshold on the scores of a metric."""

    mean: float | None = None
    """Mean of all scores; None without scores."""
    scored: int = 0
    """Number of cases with a score."""
    passing: int = 0
    """Number of passing cases."""
    now_pass: tuple[CaseId, ...] = ()
    """The cases that pass, but not by the saved threshold."""
    scores: tuple[tuple[float, int], ...] = ()
    """Scores with their counts, the lowest first; close scores are joined under the highest of them."""
    cases: tuple[tuple[CaseId, float], ...] = ()
    """The worst cases, each with its worst score, the worst first."""


class ScoreTable:
    """A table of scores of results, and the results that matter for each case."""

    def __init__(self, case_at: Callable[[int], CaseId]) -> None:
        self._case_at = case_at
        self._db = sqlite3.connect(":memory:", isolation_level=None, uri=True)
        self._db.executescript(_TABLES)

    # Results and cases

    def add_stored(self, path: Path, results: Mapping[int, int]) -> set[int]:
        """Adds results of a run's file.

        `results` are ids of results by the number of their case in the file. Returns the ids of results whose
        scores do not decide the verdict. Raises the errors of `RunFile`.
        """
        # Refuses what is no run, and rolls back one that was killed.
        RunFile(path)
        with translate_errors(path):
            self._db.execute("ATTACH ? AS run", (f"{path.absolute().as_uri()}?mode=rw",))
            try:
                with self._db:
                    self._db.execute("BEGIN")
                    self._db.executemany("INSERT INTO wanted VALUES (?, ?)", results.items())
                    for query in _FROM_RUN:
                        self._db.execute(query)
                decided = "SELECT result FROM decided JOIN wanted USING (result)"
                return {result for (result,) in self._rows(decided, {})}
            finally:
                self._db.execute("DELETE FROM wanted")
                self._db.execute("DETACH run")

    def add(self, id: int, result: CaseResult) -> bool:
        """Adds a result that is in no file; returns whether its scores do not decide the verdict."""
        with self._db:
            self._db.execute("BEGIN")
            for number, repeat in enumerate(result.repeats):
                is_missing = repeat.error is not None and repeat.error.type == NOT_RECORDED
                row = id, number, _MISSING if is_missing else _RANKS[repeat.status]
                self._db.execute("INSERT INTO repeats VALUES (?, ?, ?)", row)
                self._db.executemany(
                    "INSERT OR REPLACE INTO scores VALUES (?, ?, ?, ?, ?)",
                    [
                        (
                            id,
                            number,
                            status.name,
                            status.score,
                            None if status.is_passed_over else _RANKS.get(status.status),
                        )
                        for status in repeat.metrics
                    ],
                )
            is_decided = result.decision is not None or any(
                judgement.score == 0
                for repeat in result.repeats
                for metric in repeat.metrics
                if metric.score is None and metric.name in NEED_EVERY_JUDGEMENT
                for turn in metric.per_invocation
                for judgement in turn.judgements
            )
            if is_decided:
                row = id, _RANKS[result.status], result.policy_met
                self._db.execute("INSERT INTO decided VALUES (?, ?, ?)", row)
        return is_decided

    def put_cases(self, rows: Iterable[CaseRow]) -> None:
        """Replaces the rows of cases."""
        with self._db:
            self._db.execute("BEGIN")
            self._db.executemany("INSERT OR REPLACE INTO cases VALUES (?, ?, ?, ?, ?)", rows)

    def remove(self, ids: Collection[int]) -> None:
        """Removes results."""
        with self._db:
            self._db.execute("BEGIN")
            for table in ("repeats", "scores", "decided"):
                self._db.executemany(f"DELETE FROM {table} WHERE result = ?", [(result,) for result in ids])

    # Questions

    def trial(self, tried: TriedThreshold) -> Trial:
        """The effect of a threshold on the scores that are shown."""
        values = tried._asdict()
        sign, worst, order = (">=", "min", "ASC") if not tried.lower_is_better else ("<=", "max", "DESC")
        scores, mean = self._scores(values, tried.interval, sign)
        if not scores:
            return Trial()
        by_case = _BY_CASE.format(sign=sign)
        ((scored, passing, now_pass),) = self._rows(
            f"{by_case} SELECT count(*), total(now), "
            "json_group_array(number) FILTER (WHERE now AND NOT before) FROM verdicts",
            values,
        )
        is_moved = None not in (tried.threshold, tried.saved) and tried.threshold != tried.saved
        cases = self._rows(
            f"SELECT number, {worst}(score) AS worst {_SHOWN_SCORES} AND score IS NOT NULL GROUP BY result "
            f"ORDER BY worst {order}, number LIMIT {_MAX_WORST}",
            values,
        )
        return Trial(
            mean,
            scored,
            int(passing),
            tuple(self._case_at(number) for number in json.loads(now_pass)) if is_moved else (),
            scores,
            tuple((self._case_at(number), score) for number, score in cases),
        )

    def _scores(
        self, values: Mapping[str, object], interval: tuple[float, float] | None, sign: str
    ) -> tuple[tuple[tuple[float, int], ...], float | None]:
        """The scores of a trial, and their mean."""
        if interval is None:
            ((most,),) = self._rows(f"SELECT max(score) {_SHOWN_SCORES}", values)
            interval = 0.0, most or 1.0
        low, high = interval
        rows = self._rows(
            f"SELECT max(score), count(*), total(score) {_SHOWN_SCORES} AND score IS NOT NULL "
            f"GROUP BY CAST((score - :low) / :part AS INTEGER), score {sign} :threshold ORDER BY 1",
            {**values, "low": low, "part": (high - low) / _PARTS or 1.0},
        )
        count = sum(count for _, count, _ in rows)
        mean = sum(total for *_, total in rows) / count if count else None
        return tuple((score, count) for score, count, _ in rows), mean

    def verdicts(self, side: Side, other: Side) -> dict[CaseId, Verdict]:
        """The verdicts of the cases, in order, whose outcome may differ between two configs."""
        limits = [(name, limit) for name, limit in side.limits.items() if limit is not None]
        removed = other.limits.keys() - side.limits.keys()
        with self._db:
            self._db.execute("BEGIN")
            self._db.execute("DELETE FROM limits")
            self._db.executemany(
                "INSERT INTO limits VALUES (?, ?, ?, ?)",
                [
                    *((name, *limit, False) for name, limit in limits),
                    *((name, 0, 0, True) for name in removed),
                ],
            )
        only, values = "", dict[str, object](pass_if=side.pass_if)
        if side.limits.keys() == other.limits.keys() and side.pass_if == other.pass_if:
            # Other thresholds alone: only scores from one to the other have another verdict.
            between = ["FALSE"]
            for place, (name, limit) in enumerate(limits):
                if (before := other.limits[name]) is not None and before != limit:
                    low, high = sorted((limit.threshold, before.threshold))
                    values |= {f"name{place}": name, f"low{place}": low, f"high{place}": high}
                    between.append(f"metric = :name{place} AND score BETWEEN :low{place} AND :high{place}")
            scores = f"SELECT result FROM scores WHERE {' OR '.join(between)}"
            only = f"AND (saved <> edited OR saved IN ({scores}))"
        rows = self._rows(_VERDICTS.format(side=side.column, only=only), values)
        return {
            self._case_at(number): Verdict(WORST_FIRST[rank], bool(passes)) for number, rank, passes in rows
        }

    def _rows(self, query: str, values: Mapping[str, object]) -> list[tuple[Any, ...]]:
        return self._db.execute(query, values).fetchall()
