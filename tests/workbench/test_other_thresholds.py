"""Outcomes after a change of thresholds: those of scoring again, without scoring again."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from random import Random

import pytest

from evaltui.core.metrics.normal_config import score_alike
from evaltui.core.model.config import EvalConfig
from evaltui.core.secrets import Secrets
from evaltui.workbench import rescoring, scoring_again
from evaltui.workbench.kept_results import ResultInFile
from evaltui.workbench.other_thresholds import OtherThresholds
from evaltui.workbench.scoring_again import actual_of, score_again
from evaltui.workbench.workbench import Workbench

CASES = 60
AGENT = """
from evaltui.events import text, tool_call

def root_agent(message, session):
    number = int(message.split()[-1])
    for call in range(number % 3):
        yield tool_call("look", {"at": call})
    if number % 17 == 3:
        raise ValueError("no")
    yield text(" ".join("abcdefghij"[: number % 11]) or "nothing")
"""


def turn(random, number):
    return {
        "user_content": {"role": "user", "parts": [{"text": f"do {number}"}]},
        "final_response": {"role": "model", "parts": [{"text": " ".join(random.sample("abcdefghij", 5))}]},
        "intermediate_data": {"tool_uses": [{"name": "look", "args": {"at": at}} for at in range(2)]},
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("thresholds") / "agent"
    made.mkdir()
    (made / "__init__.py").write_text("from . import agent\n")
    (made / "agent.py").write_text(AGENT)
    random = Random(7)
    cases = [
        {
            "eval_id": f"case {number}",
            "conversation": [turn(random, number + more) for more in range(1 + number % 3)],
            **({"final_session_state": {"x": 1}} if number % 13 == 5 else {}),
        }
        for number in range(CASES)
    ]
    (made / "s.evalset.json").write_text(json.dumps({"eval_set_id": "s", "eval_cases": cases}, indent=1))
    (made / "test_config.json").write_text(json.dumps(config(0.0, 0.4)))
    words = [sys.executable, "-m", "evaltui", "run", str(made)]
    assert subprocess.run(words, capture_output=True).returncode == 1
    return made


def config(calls, answers, **more):
    criteria = {"tool_trajectory_avg_score": calls, "response_match_score": answers}
    return {"criteria": criteria, "evaltui": {"criteria": {"trajectory_recall": 0.0}}} | more


async def opened(folder):
    bench = Workbench(folder)
    await bench.open()
    await bench.outcomes.restore()
    results = bench.outcomes.results.of("s.evalset.json")
    assert len(results) == CASES
    return bench, results


async def scored_in_full(bench, case, scored, wanted):
    events = bench.outcomes.events_of(case)
    return await score_again(scored, actual_of(events), scored.stored, wanted, Secrets())


@pytest.mark.parametrize("seed", range(8))
async def test_outcomes_that_follow_from_scores_are_those_of_scoring_again(folder, seed):
    random = Random(seed)
    bench, results = await opened(folder)
    known = sorted({score for _, one in results for score in one.kept.scores.values()})
    follow = 0
    outcomes = dict(results)
    for _ in range(4):
        wanted = EvalConfig.model_validate(config(random.choice([0, 0.5, 1, *known]), random.choice(known)))
        other = OtherThresholds(wanted, Secrets())
        for case, as_run in results:
            new = other.outcome(outcomes[case], as_run.stored)
            if new is None:
                continue
            full = await scored_in_full(bench, case, as_run, wanted)
            assert (new.status, new.config) == (full.status, wanted)
            assert new.kept.policy_met == full.result.policy_met
            assert new.result == full.result
            outcomes[case] = new
            follow += new.kept.file is not as_run.kept.file
    assert follow > CASES / 2
    await bench.close()


@pytest.mark.parametrize(
    "wanted",
    [
        config(0.0, 0.4, evaltui={"criteria": {"trajectory_recall": 0.0}, "thoughts": "score"}),
        config(0.0, 0.4, evaltui={"criteria": {"trajectory_recall": 0.5}}),
        {"criteria": {"response_match_score": 0.5}},
        config({"threshold": 0.5, "match_type": "IN_ORDER"}, 0.4),
        config(0.0, 0.5, customMetrics={"response_match_score": {"codeConfig": {"name": "a.b"}}}),
    ],
)
async def test_other_changes_are_scored(folder, wanted):
    bench, results = await opened(folder)
    other = OtherThresholds(EvalConfig.model_validate(wanted), Secrets())
    assert [other.outcome(scored, scored.stored) for _, scored in results] == [None] * CASES
    await bench.close()


async def test_a_threshold_changed_in_the_workbench_scores_only_what_scores_do_not_tell(folder, monkeypatch):
    bench, results = await opened(folder)
    scored = []
    known = rescoring.score_again

    async def counted(*given):
        scored.append(1)
        return await known(*given)

    monkeypatch.setattr(rescoring, "score_again", counted)
    monkeypatch.setattr(scoring_again, "score_again", counted)
    file = folder / "s.evalset.json"
    path = folder / "test_config.json"
    before = path.read_text()
    try:
        path.write_text(json.dumps(config(0.0, 0.95)))
        await bench.open()
        await bench.outcomes.rescored([file])
        now = dict(bench.outcomes.results.of("s.evalset.json"))
        wanted = EvalConfig.model_validate(config(0.0, 0.95))
        assert all(score_alike(one.config, wanted) for one in now.values())
        fails = [case for case, one in now.items() if one.status == "FAILED"]
        assert len(fails) > sum(one.status == "FAILED" for _, one in results)
        assert len(scored) < CASES / 4
        seen = len(scored)
        case = next(case for case in fails if isinstance(now[case].kept, ResultInFile))
        assert now[case].result.metrics[1].threshold == 0.95
        assert now[case].shown.status == "FAILED"
        assert len(scored) == seen + 1
    finally:
        path.write_text(before)
        await bench.close()
        await asyncio.sleep(0)
