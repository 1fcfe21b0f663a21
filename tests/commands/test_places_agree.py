"""Each place that says how the cases of a run ended says the same, whatever that is."""

from __future__ import annotations

import csv
import json
import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from command_line import every_report
from hypothesis import given
from hypothesis import strategies as st
from stored_runs import store_repeats

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.errors import ErrorInfo, ErrorKind
from evaltui.core.model.outcome import MetricResult, RepeatResult, Status
from evaltui.core.model.variants import Change, Variant
from evaltui.project.run_settings import RunSettings
from evaltui.runs.listing import read_row

STATUSES = {"p": Status.PASSED, "f": Status.FAILED, "e": Status.ERROR, "n": Status.NOT_EVALUATED}
MARKS = {"PASSED": "✓", "FAILED": "✗", "ERROR": "!", "FLAKY": "≈", "NOT_EVALUATED": "–"}
# Two sets have the same id.
SETS = {"lights.evalset.json": "lights", "evals/lights.evalset.json": "lights", "home.evalset.json": "home"}
EVAL_IDS = ["a", "A", "night::x", "ünï ✓", "-opt", "x|y", "p<b>", "=cmd"]


@dataclass
class Plan:
    """A run by the outcomes of its repeats, a letter each; a case with fewer letters was cut."""

    repeats: int
    pass_if: str | float
    cases: dict[CaseId, str]

    def result(self, case: CaseId) -> tuple[Status, Status]:
        """The status of a case, and its verdict: other than the status for a flaky case."""
        letters = self.cases[case]
        passed, unjudged = letters.count("p"), letters.count("n")
        share = {"all": 1.0, "majority": (self.repeats // 2 + 1) / self.repeats}
        rate = self.pass_if if isinstance(self.pass_if, float) else share[self.pass_if]
        needed = rate * self.repeats - 1e-9
        if len(letters) < self.repeats or (passed and passed < needed <= passed + unjudged):
            return Status.NOT_EVALUATED, Status.NOT_EVALUATED
        if 0 < passed < len(letters) - unjudged:
            return Status.FLAKY, Status.PASSED if passed >= needed else Status.FAILED
        worst = "p" if passed else next(letter for letter in "fenp" if letter in letters)
        return STATUSES[worst], STATUSES[worst]

    def store(self, agent: Path, **header: Any) -> Path:
        """The file of the run."""
        repeats = {case: [*map(repeat_result, letters)] for case, letters in self.cases.items()}
        settings = RunSettings(runs=self.repeats, pass_if=self.pass_if)
        return store_repeats(agent, SETS, repeats, settings, **header)

    def rate(self, case: CaseId) -> float | None:
        """The pass rate of a case; None without a verdict."""
        letters = self.cases.get(case, "").replace("n", "")
        judged = case in self.cases and self.result(case)[1] in (Status.PASSED, Status.FAILED)
        return letters.count("p") / len(letters) if judged else None


def repeat_result(letter: str) -> RepeatResult:
    status = STATUSES[letter]
    if status is Status.ERROR:
        return RepeatResult(status, error=ErrorInfo("RuntimeError", "no boiler", kind=ErrorKind.AGENT))
    score = {"p": 1.0, "f": 0.0}.get(letter)
    return RepeatResult(status, (MetricResult("response_match_score", score, 0.8, status, reason="why"),))


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    repeats = draw(st.sampled_from([1, 1, 2, 3, 5]))
    ids = st.builds(CaseId, st.sampled_from([*SETS]), st.sampled_from(EVAL_IDS))
    letters = draw(
        st.sampled_from(
            [
                st.text("p", min_size=repeats, max_size=repeats),
                st.text("pn", min_size=repeats, max_size=repeats),
                st.text("ppfen", min_size=repeats, max_size=repeats),
                st.text("ppfen", max_size=repeats),
            ]
        )
    )
    cases = draw(st.dictionaries(ids, letters, min_size=1, max_size=8))
    in_order = dict(sorted(cases.items(), key=lambda item: [*SETS].index(item[0].path)))
    return Plan(repeats, draw(st.sampled_from(["all", "majority", 0.5])), in_order)


def places(texts: Mapping[str, str]) -> dict[str, Counter[object]]:
    """How often each report has a case with a status, its mark, or its verdict."""
    data, page = json.loads(texts["json"]), texts["html"]
    rows = {
        (row["path"], row["eval_id"].removeprefix("'"), row["case_status"])
        for row in csv.DictReader(texts["csv"].splitlines())
    }
    junit = ET.fromstring(texts["junit"])
    return {
        "json": Counter((case["path"], case["eval_id"], case["status"]) for case in data["cases"]),
        "json totals": Counter({word.upper(): number for word, number in data["totals"].items() if number}),
        "csv": Counter(rows),
        "junit": Counter(
            (case.get("name"), next((part.tag for part in case if part.tag in ("failure", "error")), ""))
            for case in junit.iter("testcase")
        ),
        "junit totals": Counter(
            {name: int(junit.get(name) or 0) for name in ("tests", "failures", "errors", "skipped")}
        ),
        "markdown": Counter(re.findall(r"^\| ([✓✗!≈–]) ", texts["markdown"], re.MULTILINE)),
        "html": Counter(re.findall(r'<details class="case" data-status="(\w+)"', page)),
        "html title": Counter(re.findall(r"<title>(\d+/\d+) case", page)),
        "console": Counter(re.findall(r"^([✓✗!≈–]) ", texts["console"], re.MULTILINE)),
    }


def expected_places(plan: Plan) -> dict[str, Counter[object]]:
    results = {case: plan.result(case) for case in plan.cases}
    statuses = Counter(status for status, _ in results.values())
    verdicts = Counter(verdict for _, verdict in results.values())
    failed, passed = verdicts[Status.FAILED], verdicts[Status.PASSED]
    tags = {Status.PASSED: "", Status.FAILED: "failure"}
    by_case = Counter((case.path, case.eval_id, str(status)) for case, (status, _) in results.items())
    marks = Counter(MARKS[status] for status, _ in results.values())
    return {
        "json": by_case,
        "json totals": Counter({"CASES": len(results), **{str(status): n for status, n in statuses.items()}}),
        "csv": by_case,
        "junit": Counter(
            (case.eval_id, tags.get(verdict, "error")) for case, (_, verdict) in results.items()
        ),
        "junit totals": Counter(
            tests=len(results), failures=failed, errors=len(results) - failed - passed, skipped=0
        ),
        "markdown": Counter(
            MARKS[status] for status, verdict in results.values() if verdict is not Status.PASSED
        ),
        "html": Counter(map(str, statuses.elements())),
        "html title": Counter([f"{passed}/{len(results)}"]),
        "console": marks,
    }


def reports(folder: Path, *words: object) -> dict[str, Counter[object]]:
    code, texts = every_report(folder, *words)
    return {"exit code": Counter([code]), **places(texts)}


@given(plans())
def test_every_report_the_list_and_the_exit_code_agree(tmp_path_factory, plan):
    agent = tmp_path_factory.mktemp("agent")
    (agent / "agent.py").write_text("root_agent = lambda message: message\n")
    path = plan.store(agent)
    wanted = expected_places(plan)
    assert reports(agent, "report", agent, path) == {"exit code": Counter([0]), **wanted}
    verdicts = {verdict for _, verdict in map(plan.result, plan.cases)}
    code = 1 if Status.FAILED in verdicts else 0 if verdicts == {Status.PASSED} else 3
    merged = reports(agent, "merge", path, "-o", agent / "merged.sqlite")
    assert merged == {"exit code": Counter([code]), **wanted}
    row = read_row(path)
    whole = [plan.result(case) for case, letters in plan.cases.items() if len(letters) == plan.repeats]
    assert (row.selected, row.not_run) == (len(plan.cases), len(plan.cases) - len(whole))
    assert +Counter(row.totals.counts) == Counter(status for status, _ in whole)
    assert row.totals.passed == sum(verdict is Status.PASSED for _, verdict in whole)


@st.composite
def plans_in_parts(draw: st.DrawFn) -> list[Plan]:
    """Runs of cases that they partly share, in the order of their starts."""
    repeats = draw(st.sampled_from([1, 2, 3]))
    cases = st.dictionaries(
        st.builds(CaseId, st.sampled_from([*SETS]), st.sampled_from(EVAL_IDS[:2])),
        st.one_of(st.text("pfen", min_size=repeats, max_size=repeats), st.text("pfen", max_size=repeats)),
        min_size=1,
    )
    return [Plan(repeats, "all", part) for part in draw(st.lists(cases, min_size=2, max_size=4))]


def whole_of(parts: Sequence[Plan]) -> Plan:
    """The merged plan: of a case the last run that finished it counts, else the one with most repeats."""
    cases: dict[CaseId, str] = {}
    for part in parts:
        for case, letters in part.cases.items():
            if len(letters) >= len(cases.get(case, "")):
                cases[case] = letters
    return replace(parts[0], cases=cases)


@given(plans_in_parts(), st.data())
def test_a_merge_of_merges_in_any_order_is_the_merge_of_all(tmp_path_factory, parts, data):
    agent = tmp_path_factory.mktemp("agent")
    (agent / "agent.py").write_text("root_agent = lambda message: message\n")
    runs = {part.store(agent): {number} for number, part in enumerate(parts)}
    for _ in range(data.draw(st.integers(1, 4))):
        logs = data.draw(st.lists(st.sampled_from([*runs]), min_size=2, unique=True))
        output = agent / f"merged-{data.draw(st.integers(0, 2))}.sqlite"
        merged = reports(agent, "merge", *logs, "-o", output)
        runs[output] = set().union(*(runs[log] for log in logs))
        plan = whole_of([parts[number] for number in sorted(runs[output])])
        assert {**merged, "exit code": 0} == {**expected_places(plan), "exit code": 0}


def matrix_cells(texts: Mapping[str, str]) -> dict[str, dict[tuple[str, CaseId], tuple[str, str]]]:
    """The status of each case in each variant, and whether it is better or worse than in the base."""
    cases = json.loads(texts["json"])["cases"]
    rows = csv.DictReader(texts["csv"].splitlines())
    return {
        "json": {
            (cell["variant"], CaseId(case["path"], case["eval_id"])): (
                cell["status"] or "",
                cell.get("direction") or "",
            )
            for case in cases
            for cell in case["results"]
        },
        "csv": {
            (row["variant"], CaseId(row["path"], row["eval_id"].removeprefix("'"))): (
                row["status"],
                row["direction"],
            )
            for row in rows
        },
    }


def expected_cells(variants: Sequence[Plan]) -> dict[tuple[str, CaseId], tuple[str, str]]:
    cells = {}
    for case in {case for plan in variants for case in plan.cases}:
        base = variants[0].rate(case)
        for number, plan in enumerate(variants):
            status = str(plan.result(case)[0]) if case in plan.cases else ""
            rate, direction = plan.rate(case), ""
            if number and rate is not None and base is not None:
                direction = "better" if rate > base else "worse" if rate < base else "same"
            cells[f"v{number}", case] = status, direction
    return cells


@given(st.lists(plans(), min_size=2, max_size=3))
def test_every_report_of_a_matrix_agrees(tmp_path_factory, variants):
    agent = tmp_path_factory.mktemp("agent")
    (agent / "agent.py").write_text("root_agent = lambda message: message\n")
    # The policy and the number of runs are those of the matrix.
    variants = [
        replace(
            variants[0],
            cases={case: letters[: variants[0].repeats] for case, letters in plan.cases.items()},
        )
        for plan in variants
    ]
    for number, plan in enumerate(variants):
        changes = (Change("env.N", str(number)),) if number else ()
        plan.store(agent, matrix="m", variant=Variant(f"v{number}", changes))
    kinds = ("json", "csv", "markdown", "html", "console")
    code, texts = every_report(agent, "report", agent, "m", kinds=kinds)
    assert code == 0
    cells = expected_cells(variants)
    assert matrix_cells(texts) == {"json": cells, "csv": cells}
    directions = Counter(direction for _, direction in cells.values())
    marks = {"▲": directions["better"], "▼": directions["worse"]}
    assert {mark: texts["console"].count(mark) for mark in marks} == marks
    assert {mark: texts["html"].count(f" {mark}</span>") for mark in marks} == marks
    patterns = 'href="(#[^"]+)"', '<details class="case" open id="([^"]+)"'
    links, ids = (re.findall(pattern, texts["html"]) for pattern in patterns)
    assert len({*links}) == len(links) == len({*ids}) == len(ids)
    for variant in json.loads(texts["json"])["variants"][1:]:
        verdict, name = variant["verdict"], variant["name"]
        of_variant = Counter(
            direction
            for (other, case), (_, direction) in cells.items()
            if other == name and case in variants[0].cases and case in variants[int(name[1:])].cases
        )
        # By chance, a case may be undecided, and by its policy the same.
        assert len(verdict["undecided"]) >= of_variant[""]
        assert len(verdict["better"]) <= of_variant["better"]
        assert len(verdict["worse"]) <= of_variant["worse"]
