"""The same verdicts of a judge, counted by us and by google-adk's own classes."""

import json

import pytest

pytest.importorskip("google.adk")
pytest.importorskip("pandas")
from google.adk.evaluation.conversation_scenarios import ConversationScenario
from google.adk.evaluation.eval_case import Invocation as AdkInvocation
from google.adk.evaluation.eval_metrics import BaseCriterion, EvalMetric
from google.adk.evaluation.hallucinations_v1 import HallucinationsV1Evaluator
from google.adk.evaluation.simulation.per_turn_user_simulator_quality_v1 import PerTurnUserSimulatorQualityV1
from google.adk.models.llm_response import LlmResponse
from google.genai import types
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_judge import OUT_OF_QUOTA, ScriptedJudge, called, event, judged, said, samples, turn

from evaltui.core.metrics.judges.hallucinations import hallucinations_v1
from evaltui.core.metrics.judges.user_simulator import per_turn_user_simulator_quality_v1

pytestmark = [pytest.mark.adk, pytest.mark.compat]
few = settings(max_examples=80, deadline=None)


class ScriptedLlm:
    """A judge for google-adk: a text, or an exception, per question."""

    def __init__(self, answers):
        self._answers = iter(answers)

    async def generate_content_async(self, request):
        said = next(self._answers)
        if isinstance(said, Exception):
            raise said
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=said)]))


def evaluator(kind, name, threshold, criterion):
    criterion = BaseCriterion.model_validate({"threshold": threshold, **criterion})
    return kind(EvalMetric(metric_name=name, threshold=threshold, criterion=criterion))


def outcome(result):
    """Scores and statuses of a result of google-adk, overall and by turn."""
    turns = [(one.score, one.eval_status.name) for one in result.per_invocation_results]
    return result.overall_score, result.overall_eval_status.name, turns


def ours(result):
    turns = [(one.score, one.status.value) for one in result.per_invocation]
    return result.score, result.status.value, turns


# Sentences of one word, which both sides cut in the same way.
labels = st.sampled_from(
    ["supported", "unsupported", "contradictory", "disputed", "not_applicable", "Supported", "splendid"]
)
texts = st.lists(labels, min_size=1, max_size=4)
turns_of_texts = st.lists(
    st.fixed_dictionaries(
        {
            "before": st.lists(st.lists(texts, min_size=1, max_size=2), max_size=2),
            "answer": st.none() | texts,
            "again": st.booleans(),
            "fails": st.booleans(),
        }
    ),
    min_size=1,
    max_size=3,
)
thresholds = st.sampled_from([0.0, 1 / 3, 0.5, 2 / 3, 0.75, 1.0])


def words(text):
    return " ".join(f"Word{number}." for number, _ in enumerate(text))


@few
@given(made=turns_of_texts, threshold=thresholds, every_text=st.booleans())
async def test_sentences_are_counted_as_adk_counts_them(made, threshold, every_text):
    turns, for_adk, for_us = [], [], []
    for number, one in enumerate(made):
        before = [
            event(*(said(f"Say{number}. " + words(text)) for text in parts), called("look_up"))
            for parts in one["before"]
        ]
        answer = None if one["answer"] is None else f"Answer{number}. " + words(one["answer"])
        said_before = [text for parts in one["before"] for text in parts]
        if answer and one["again"]:
            # As an answer that came with calls: it is among the events, too.
            before.append(event(said(answer), called("look_up")))
            said_before.append(one["answer"])
        turns.append(turn("hi", *before, answer=answer))
        judged_texts = (said_before if every_text else []) + ([one["answer"]] if one["answer"] else [])
        for text in judged_texts:
            said_labels = ["supported", *text]
            if one["fails"]:
                for_adk.append(RuntimeError("429"))
                for_us.append(OUT_OF_QUOTA)
                continue
            for_adk.append("".join(f"<sentence>{n}</sentence>" for n, _ in enumerate(said_labels)))
            for_adk.append(
                "\n\n".join(
                    f"sentence: {n}\nlabel: {label}\nrationale: why\nsupporting_excerpt: null\n"
                    "contradicting_excerpt: null"
                    for n, label in enumerate(said_labels)
                )
            )
            for_us.append(
                json.dumps([{"sentence": n, "label": label} for n, label in enumerate(said_labels, start=1)])
            )
    criterion = {"evaluate_intermediate_nl_responses": every_text, "judge_model_options": {"num_samples": 3}}
    adk = evaluator(HallucinationsV1Evaluator, "hallucinations_v1", threshold, criterion)
    adk._judge_model = ScriptedLlm(for_adk)
    theirs = await adk.evaluate_invocations([AdkInvocation.model_validate(one) for one in turns])

    given_ = judged("hallucinations_v1", *turns, threshold=threshold, criterion=criterion, as_adk=True)
    result = await hallucinations_v1(given_, ScriptedJudge(*for_us, None))
    assert ours(result) == outcome(theirs)


SCENARIO = {"starting_prompt": "Hello.", "conversation_plan": "Say hello."}
verdicts = st.one_of(
    st.sampled_from(
        [
            '{"is_valid": true}',
            '{"criteria": [{"passes": false}],\n "is_valid": false\n}',
            '{"is_valid": "partially_valid", "reason": "x"}',
            '{"is_valid": ["Almost"]}',
            '{"is_valid": True, }',
            '{"is_valid": "perhaps"}',
            '{"is_valid": true',
            "valid",
        ]
    ),
    st.lists(
        st.sampled_from(
            ['"is_valid"', ":", " ", "true", "Valid", "false", "invalid", "[", "]", '"', ",", "}", "\n"]
        ),
        max_size=9,
    ).map(lambda pieces: '{"is_valid":' + "".join(pieces)),
)


@few
@given(
    data=st.data(),
    messages=st.lists(st.sampled_from(["Hello.", " Hello.\n", "Bye."]), min_size=1, max_size=3),
    number=st.integers(1, 4),
    threshold=thresholds,
)
async def test_a_simulated_user_is_judged_as_adk_judges_it(data, messages, number, threshold):
    turns = [turn(message, answer="Yes?") for message in messages]
    script = data.draw(st.lists(verdicts, min_size=len(turns) * number, max_size=len(turns) * number))
    name = "per_turn_user_simulator_quality_v1"
    adk = evaluator(PerTurnUserSimulatorQualityV1, name, threshold, samples(number))
    adk._llm = ScriptedLlm(script)
    theirs = await adk.evaluate_invocations(
        [AdkInvocation.model_validate(one) for one in turns],
        conversation_scenario=ConversationScenario.model_validate(SCENARIO),
    )

    given_ = judged(
        name, *turns, threshold=threshold, criterion=samples(number), scenario=SCENARIO, as_adk=True
    )
    result = await per_turn_user_simulator_quality_v1(given_, ScriptedJudge(*script))
    assert ours(result) == outcome(theirs)
