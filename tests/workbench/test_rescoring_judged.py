"""What judges found stands while a case is edited, and says so where it may not hold any more."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from eval_data import make_case, make_set, make_turn, write_test_config
from hypothesis import given
from hypothesis import strategies as st
from judged_metrics import RUBRICS
from judged_votes import SEVERAL, case_of, config_of, edges, judged_by, score

from evaltui import CaseResult, EvalCase, EvalConfig, Invocation, Status
from evaltui.core.model.judgement import JudgedBy
from evaltui.core.model.outcome import InvocationScore, MetricResult, RepeatResult
from evaltui.core.model.stored_cases import StoredCase
from evaltui.core.secrets import Secrets
from evaltui.workbench.criteria.criteria import Criteria
from evaltui.workbench.criteria.effect import flips_of
from evaltui.workbench.result.rescoring import score_again
from evaltui.workbench.result.stored_results import ResultInMemory
from evaltui.workbench.state import CaseOutcome, RunRef

METRIC = "final_response_match_v2"
STALE = "stale score; run again"
FOUND = MetricResult(
    METRIC,
    0.6,
    0.5,
    Status.PASSED,
    per_invocation=(InvocationScore(0.6, Status.PASSED),),
    reason="3 of 5 votes counted",
    judge=JudgedBy("gemini-judge", "final_response_match/1", 5, 5),
)


def turn(answer):
    return make_turn("Do it", answer)


def stored(answer="It was done.", **more):
    return StoredCase.of(EvalCase.model_validate(make_case("one", turn(answer), **more)))


def config(threshold=0.5, evaltui=None, **criterion):
    criteria = {METRIC: {"threshold": threshold, **criterion}, "response_match_score": 0.1}
    return EvalConfig.model_validate({"criteria": criteria, "evaltui": evaltui or {}})


ACTUAL = {0: (Invocation.model_validate(turn("It is done.")),)}


@pytest.fixture
def scored():
    repeat = RepeatResult(Status.PASSED, (FOUND,))
    result = CaseResult("one", Status.PASSED, (FOUND,), eval_set_id="s", repeats=(repeat,))
    return CaseOutcome(ResultInMemory.of(result), RunRef(1), stored(), config())


async def again(scored, case=None, with_config=None):
    return await score_again(scored, ACTUAL, case or stored(), with_config or config(), Secrets())


def judged(scored):
    return next(one for one in scored.result.metrics if one.name == METRIC)


async def test_what_was_found_stands_as_long_as_the_judge_saw_the_same(scored):
    for case, with_config in (
        (stored(), config()),
        (stored(final_session_state={"a": 1}), config()),
        (stored(), config(evaltui={"rules": [{"tool": "f", "arg": "a", "match": "ignore"}]})),
    ):
        assert judged(await again(scored, case, with_config)) == FOUND


async def test_where_it_saw_something_else_that_is_said_until_it_is_undone(scored):
    changed = await again(scored, stored("It was not done."))
    assert judged(changed) == replace(FOUND, reason=f"{STALE}; {FOUND.reason}")
    still = await again(changed, stored("It was never done."))
    assert judged(still).reason == f"{STALE}; {FOUND.reason}"
    assert judged(await again(still)) == FOUND


@pytest.mark.parametrize(
    "with_config",
    [
        config(judge_model_options={"judge_model": "another"}),
        config(evaltui={"turns": [{"set": "s", "case": "one", "turn": 0, "mode": "context"}]}),
    ],
)
async def test_so_it_is_for_what_the_config_says(scored, with_config):
    assert judged(await again(scored, with_config=with_config)).reason.startswith(STALE)


async def test_another_threshold_needs_no_judge(scored):
    higher = await again(scored, with_config=config(0.9))
    assert (judged(higher).status, judged(higher).threshold) == (Status.FAILED, 0.9)
    assert STALE not in judged(higher).reason
    assert higher.result.status is Status.FAILED
    assert judged(await again(higher)).status is Status.PASSED


WORDS = {"y": "yes", "n": "no", "u": "unknown"}
THRESHOLDS = st.sampled_from([0.2, 0.5, 0.6, 0.8, 1.0])


def talk(rubrics, expected):
    """A case with rubrics, and two turns with an expected response or none."""
    turns = [turn("It was done.") for _ in expected]
    for one, is_expected in zip(turns, expected, strict=True):
        if not is_expected:
            del one["final_response"]
    texts = [{"rubric_id": name, "rubric_content": {"text_property": name}} for name in rubrics]
    return EvalCase.model_validate(make_case("one", *turns, rubrics=texts))


def both(answers, rubrics, optional):
    """A config of an answer's metric and one of rubrics, by these thresholds."""
    options = {"judge_model_options": {"num_samples": 3}}
    criteria = {METRIC: {"threshold": answers, **options}, RUBRICS: {"threshold": rubrics, **options}}
    return EvalConfig.model_validate({"criteria": criteria, "evaltui": {"optional": optional}})


def said(word, name, is_answer):
    if word == "?":
        return "I cannot judge."
    if is_answer:
        return json.dumps({"reasoning": "so", "is_the_agent_response_valid": word == "y"})
    return {"id": name, "rationale": "so", "verdict": WORDS[word]}


@given(
    st.lists(st.text("ynu?", min_size=3, max_size=3), min_size=6, max_size=6),
    st.lists(st.booleans(), min_size=2, max_size=2),
    st.sets(st.sampled_from([METRIC, RUBRICS])),
    st.lists(st.tuples(THRESHOLDS, THRESHOLDS), min_size=2, max_size=3),
)
async def test_open_judgements_decide_by_other_thresholds_as_in_a_run_by_them(
    words, expected, optional, thresholds
):
    case, done = talk("ab", expected), [Invocation.model_validate(turn("It is done."))] * 2

    async def run(with_config):
        asked = {}

        def answer(question):
            place = question.metric, question.turn
            vote = asked[place] = asked.get(place, -1) + 1
            if question.metric == METRIC:
                return said(words[question.turn][vote].replace("u", "?"), "", is_answer=True)
            both_words = [words[2 + 2 * question.turn + number][vote] for number in (0, 1)]
            found = [said(word, name, is_answer=False) for word, name in zip(both_words, "ab", strict=True)]
            return json.dumps({"rubrics": [one for one in found if isinstance(one, dict)]})

        return await judged_by(case, with_config, done, answer)

    configs = [both(*limits, sorted(optional)) for limits in thresholds]
    repeat = await run(configs[0])
    result = CaseResult("one", repeat.status, repeat.metrics, eval_set_id="s", repeats=(repeat,))
    now = CaseOutcome(ResultInMemory.of(result), RunRef(1), StoredCase.of(case), configs[0])
    for with_config in [*configs[1:], configs[0]]:
        fresh = await run(with_config)
        now = await score_again(now, {0: tuple(done)}, now.stored, with_config, Secrets())
        assert now.result.status is fresh.status
        of_both = zip(now.result.metrics, fresh.metrics, strict=True)
        for one, other in [pair for pair in of_both if pair[0].name in (METRIC, RUBRICS)]:
            assert (one.status, one.score, one.threshold) == (other.status, other.score, other.threshold)
            turns = [[(each.status, each.score) for each in some.per_invocation] for some in (one, other)]
            assert turns[0] == turns[1]


@given(SEVERAL, st.data())
async def test_votes_decide_by_another_policy_as_in_a_run_by_it(metrics, data):
    others = [
        replace(metric, threshold=threshold, optional=data.draw(st.sampled_from([metric.optional, False])))
        for metric in metrics
        for some in [edges(metric.name, metric.votes)]
        for threshold in [data.draw(st.sampled_from(some if metric.lower else [None, *some]))]
    ]
    repeat, fresh = [await score(some, config_of(some)) for some in (metrics, others)]
    result = CaseResult("a", repeat.status, repeat.metrics, eval_set_id="s", repeats=(repeat,))
    before = CaseOutcome(
        ResultInMemory.of(result), RunRef(1), StoredCase.of(case_of(metrics)), config_of(metrics)
    )
    again = await score_again(before, {0: repeat.actual}, before.stored, config_of(others), Secrets())
    assert again.result.status is fresh.status
    verdicts = [{one.name: (one.status, one.score) for one in some.metrics} for some in (again.result, fresh)]
    assert verdicts[0] == verdicts[1]


async def test_a_metric_that_was_not_judged_waits_for_a_run(scored):
    result = replace(scored.result, repeats=(RepeatResult(Status.PASSED),))
    plain = replace(scored, ref=ResultInMemory.of(result))
    new = judged(await again(plain))
    assert (new.status, new.reason) == (Status.NOT_EVALUATED, "is judged when the case is run")


async def test_no_threshold_passes_a_case_with_a_rubric_that_was_not_judged(
    write_agent, until, open_workbench
):
    folder = write_agent("def root_agent(message, session):\n    return 'It is 21 degrees.'\n")
    answer = {"rubrics": [{"id": "short", "rationale": "So it is.", "verdict": "yes"}]}
    (folder / "judging.py").write_text(f"def judge(prompt):\n    return {json.dumps(answer)!r}\n")
    rubrics = [{"rubric_id": name, "rubric_content": {"text_property": name}} for name in ("short", "polite")]
    options = {"judge_model": "judging:judge", "num_samples": 1}
    criterion = {"threshold": 0.9, "rubrics": rubrics, "judge_model_options": options}
    write_test_config(folder, criteria={RUBRICS: criterion})
    path = folder / "s.evalset.json"
    path.write_text(json.dumps(make_set("s", make_case("one", make_turn("Do it", "It was done.")))))
    bench = await open_workbench(folder)
    bench.runs.run_all()
    await until(lambda: bench.runs.current and bench.runs.current.over)
    ((case, _),) = bench.outcomes.results.of("s.evalset.json")
    criteria = Criteria(bench.editing, path)
    row = next(
        row for section in criteria.sections() for row in section.rows if getattr(row, "name", "") == RUBRICS
    )

    assert bench.outcomes.status(case) == "NOT_EVALUATED"
    assert criteria.set_threshold(row, 0.5)
    assert flips_of(criteria).cases == ()
    criteria.end_move()
    await bench.outcomes.rescored([folder / "test_config.json"])
    assert bench.outcomes.status(case) == "NOT_EVALUATED"
