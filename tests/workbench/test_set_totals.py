"""What came of a set is added up in parts, and is what adding up every case says."""

import random
from collections import Counter
from dataclasses import replace

import pytest
from fake_runs import FakeRuns

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.outcome import CaseResult, MetricResult, RepeatResult, Status
from evaltui.core.model.stored_cases import StoredCase
from evaltui.workbench import set_totals
from evaltui.workbench.set_totals import TotalsInParts
from evaltui.workbench.state import CaseOutcome, EarlierResult, RunRef
from evaltui.workbench.workbench import Workbench

NAMES = [f"case_{number}" for number in range(11)]


@pytest.fixture
async def workbench(tmp_path, write_set, monkeypatch):
    """A set whose totals are in parts of three cases, the last one smaller."""
    monkeypatch.setattr(set_totals, "_PART", 3)
    write_set(tmp_path, "greetings", **dict.fromkeys(NAMES, ("hi", "hello")))
    opened = Workbench(tmp_path, run_service=FakeRuns())
    await opened.open()
    yield opened
    await opened.close()


def a_result(chosen):
    status = chosen.choice(list(Status))
    metric = MetricResult("response_match_score", chosen.choice([None, 0.5, 1.0]), status, 0.8)
    seconds = chosen.choice([None, 1.0, 2.0, 4.0])
    repeats = (RepeatResult(status, (metric,), seconds=seconds),)
    result = CaseResult("", status, repeats=repeats, metrics=(metric,))
    return CaseOutcome(result, RunRef(chosen.randint(1, 2)), StoredCase("{}"), EvalConfig())


@pytest.mark.parametrize("seed", range(5))
async def test_parts_say_what_all_cases_say(workbench, seed):
    chosen, outcomes, before = random.Random(seed), workbench.outcomes, {}
    (eval_set,) = workbench.sets.listed
    for _ in range(60):
        case = CaseId(eval_set.case_path, chosen.choice(NAMES))
        if chosen.random() < 0.2:
            outcomes.results.drop(case)
        else:
            if (earlier := outcomes.get(case)) is not None:
                before[case] = EarlierResult(earlier.status, earlier.run.name, earlier.stored, earlier.config)
            outcomes.put(case, a_result(chosen))
        if chosen.random() < 0.5:
            assert outcomes.totals(eval_set) == TotalsInParts().get(eval_set, outcomes.get, before.get)
            assert outcomes.totals(eval_set) is outcomes.totals(eval_set)
    totals = outcomes.totals(eval_set)
    scored = [outcomes.get(CaseId(eval_set.case_path, name)) for name in NAMES]
    assert totals.statuses == Counter(str(one.status) for one in scored if one is not None)


async def test_cases_that_come_and_go_are_counted(workbench):
    outcomes, (eval_set,) = workbench.outcomes, workbench.sets.listed
    for name in NAMES:
        outcomes.put(CaseId(eval_set.case_path, name), a_result(random.Random(name)))
    every = outcomes.totals(eval_set)
    assert every.cases == len(NAMES)
    fewer = replace(eval_set, cases=(*eval_set.cases[:2], *eval_set.cases[3:]))
    assert outcomes.totals(fewer).cases == len(NAMES) - 1
    assert outcomes.totals(replace(eval_set, cases=())).cases == 0
    assert outcomes.totals(eval_set) == every


async def test_one_new_result_goes_through_its_part_alone(workbench, monkeypatch):
    outcomes, (eval_set,) = workbench.outcomes, workbench.sets.listed
    cases = [CaseId(eval_set.case_path, name) for name in NAMES]
    for case in cases:
        outcomes.put(case, a_result(random.Random(0)))
    outcomes.totals(eval_set)
    looked = []
    get = outcomes.get
    monkeypatch.setattr(outcomes, "get", lambda case: looked.append(case) or get(case))
    outcomes.totals(eval_set)
    assert not looked
    outcomes.put(cases[4], a_result(random.Random(1)))
    outcomes.totals(eval_set)
    assert looked == cases[3:6]
