"""Text scoring, without google-adk."""

import subprocess
import sys

import pytest
from eval_data import make_turn
from hypothesis import given
from hypothesis import strategies as st
from metric_cases import metric_input, turn

from evaltui.core.metrics.response_match import response_match_score, words
from evaltui.core.model.eval_set import Invocation, scored_text, unscored_texts
from evaltui.core.model.outcome import Status
from evaltui.core.model.text_diff import AuthoredText


def score(expected, actual, **marks):
    return response_match_score(
        metric_input("response_match_score", expected=expected, actual=actual, **{"threshold": 0.8, **marks})
    )


def test_words_of_many_scripts():
    assert words("Snake_case, isn't it? ") == ["snake", "case", "isn", "t", "it"]
    assert words("日本GPT４") == ["日", "本", "gpt4"]
    assert words("ที่นี่") == ["ที่", "นี่"]
    assert words("👍 !!") == []


@pytest.mark.parametrize(
    ("expected", "actual", "reason"),
    [
        (None, "yes", "no response expected, so none can match"),
        ("yes", None, "no response text"),
        ("👍", "👍", "no words to compare, only punctuation or symbols"),
        ("yes", "no", "response match 0.00"),
    ],
)
def test_reason_for_a_low_score(expected, actual, reason):
    result = score([turn(answer=expected)], [turn(answer=actual)])

    assert (result.score, result.status) == (0.0, Status.FAILED)
    assert result.reason == f"turn 1: {reason}"


def test_turns_marked_skip_are_still_scored_for_their_text():
    marks = {"skip_calls": frozenset([0]), "context": frozenset([1])}
    result = score([turn(answer="yes")] * 2, [turn(answer="no")] * 2, **marks)

    assert [entry.score for entry in result.per_invocation] == [0.0, None]
    assert result.score == 0.0


def said(*parts, before=(), author="agent"):
    """A recorded turn: parts of the final response, and texts of events before it."""
    contents = [{"parts": [part if isinstance(part, dict) else {"text": part}]} for part in before]
    return make_turn(
        "hello",
        final_response={"parts": [part if isinstance(part, dict) else {"text": part} for part in parts]},
        intermediate_data={
            "invocation_events": [{"author": author, "content": content} for content in contents]
        },
    )


def thought(text):
    return {"text": text, "thought": True}


PLAN = "I will look up the weather first."


@pytest.mark.parametrize(
    ("recorded", "scored", "unscored"),
    [
        (said("Sunny."), "Sunny.", ()),
        (said("Sunny.", "Warm."), "Sunny.\nWarm.", ()),
        (said(thought("Hm."), "Sunny."), "Sunny.", (("thought", "Hm."),)),
        (said(thought("Hm."), "Sunny.", before=[PLAN]), "Sunny.", (("agent", PLAN), ("thought", "Hm."))),
        (
            said(thought("Done."), before=[PLAN, "Sunny."]),
            "Sunny.",
            (("agent", PLAN), ("thought", "Done.")),
        ),
        (
            said(thought("Done."), before=["Sunny.", thought("Hm.")]),
            "Sunny.",
            (("thought", "Done."),),
        ),
        (said(thought("Done.")), "", (("thought", "Done."),)),
        (said({"function_call": {"name": "a"}}, before=[PLAN]), "", (("agent", PLAN),)),
    ],
)
def test_scored_text_is_the_last_answer_that_is_not_a_thought(recorded, scored, unscored):
    invocation = Invocation.model_validate(recorded)

    assert scored_text(invocation, thoughts=False) == scored
    assert unscored_texts(invocation, thoughts=False) == tuple(AuthoredText(*text) for text in unscored)


def test_thoughts_are_scored_when_asked_for():
    invocation = Invocation.model_validate(said(thought("Hm."), "Sunny.", before=[PLAN]))

    assert scored_text(invocation, thoughts=True) == "Hm.\nSunny."
    assert unscored_texts(invocation, thoughts=True) == (AuthoredText("agent", PLAN),)


@given(ruminations=st.lists(st.text(min_size=1), max_size=3), last=st.booleans())
def test_thoughts_never_change_a_score(ruminations, last):
    thoughts = [thought(text) for text in ruminations]
    plain = said("It is sunny in Paris today.", before=[PLAN])
    thinking = said(
        *([] if last else thoughts),
        "It is sunny in Paris today.",
        *(thoughts if last else []),
        before=[PLAN],
    )
    expected = [turn(answer="Today it is sunny and warm in Paris.")]

    assert score(expected, [thinking]).score == score(expected, [plain]).score


@pytest.mark.parametrize(
    "program",
    [
        "assert rouge_1_f('The answers are equal', 'the answers are equal!') == 1.0\n"
        "assert not {'rouge_score', 'nltk'} & set(sys.modules)",
        "assert 0 < rouge_1_f('the answer is equal', 'the answers are equal') < 1\n"
        "assert 'rouge_score' in sys.modules\n"
        "assert not {'nltk', 'numpy', 'scipy', 'sklearn', 'pandas'} & set(sys.modules)\n"
        "from nltk.stem import SnowballStemmer\n"
        "assert SnowballStemmer('english').stem('running') == 'run'\n"
        "assert 0 < rouge_1_f('the runner is equal', 'the runners are equal') < 1",
        "import nltk.stem\n"
        "assert 0 < rouge_1_f('the answer is equal', 'the answers are equal') < 1\n"
        "assert sys.modules['nltk'] is nltk",
    ],
    ids=["equal texts", "alone", "beside nltk"],
)
def test_the_stemmer_is_loaded_alone_and_only_where_texts_differ(program):
    head = "import sys; from evaltui.core.metrics.response_match import rouge_1_f\n"
    subprocess.run([sys.executable, "-c", head + program], check=True)
