"""Text scoring, without google-adk."""

import subprocess
import sys
import unicodedata

import pytest
from eval_data import make_turn
from hypothesis import given
from hypothesis import strategies as st
from metric_cases import metric_input, turn

from evaltui.core.metrics.response_match import response_match_score, rouge_1_f, words
from evaltui.core.model.eval_set import Invocation, scored_text, unscored_texts
from evaltui.core.model.outcome import Status
from evaltui.core.model.text_diff import AuthoredText

JAPANESE = "これはテストの正解です"
THAI = "นี่คือคำตอบที่ถูกต้องของการทดสอบ"


def score(expected, actual, **marks):
    return response_match_score(
        metric_input("response_match_score", expected=expected, actual=actual, **{"threshold": 0.8, **marks})
    )


@pytest.mark.parametrize("text", [JAPANESE, THAI, "한국어 정답입니다", "Правильный ответ", "a cat's café"])
def test_identical_texts_score_one(text):
    result = score([turn(answer=text)], [turn(answer=text)])

    assert (result.score, result.status, result.reason) == (1.0, Status.PASSED, "")


@pytest.mark.parametrize("text", ["Übergrößenträger café", "がぎぐげご パピプ", THAI, "각 나라"])
def test_composed_and_decomposed_texts_are_the_same(text):
    composed, decomposed = unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text)

    assert rouge_1_f(composed, decomposed) == 1.0


def test_half_different_japanese_scores_strictly_between():
    result = score([turn(answer=JAPANESE)], [turn(answer="これはテストの失敗だった")])

    assert 0 < result.score < 1


def test_stems_of_english_words_match():
    assert rouge_1_f("He was running quickly", "he runs quick") == pytest.approx(2 * 2 / (4 + 3))


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


def test_turn_without_a_final_response_has_no_text():
    assert scored_text(Invocation.model_validate(turn(answer=None)), thoughts=False) == ""


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


@given(one=st.text(max_size=30), other=st.text(max_size=30))
def test_score_is_symmetric_and_within_bounds(one, other):
    assert 0.0 <= rouge_1_f(one, other) <= 1.0
    assert rouge_1_f(one, other) == pytest.approx(rouge_1_f(other, one))
    assert rouge_1_f(one, one) == (1.0 if words(one) else 0.0)


def test_stemmer_is_loaded_only_when_texts_differ():
    program = (
        "import sys; from evaltui.core.metrics.response_match import rouge_1_f\n"
        "assert rouge_1_f('The answers are equal', 'the answers are equal!') == 1.0\n"
        "assert 'rouge_score' not in sys.modules and 'nltk' not in sys.modules\n"
        "assert 0 < rouge_1_f('the answer is equal', 'the answers are equal') < 1\n"
        "assert 'rouge_score' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_stemmer_brings_nothing_else_with_it():
    program = (
        "import sys; from evaltui.core.metrics.response_match import rouge_1_f\n"
        "assert rouge_1_f('an answer', 'answers') > 0\n"
        "heavy = {'nltk', 'numpy', 'scipy', 'sklearn', 'pandas'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_nltk_is_whole_for_others_afterwards():
    program = (
        "from evaltui.core.metrics.response_match import rouge_1_f\n"
        "rouge_1_f('an answer', 'answers')\n"
        "from nltk.stem import SnowballStemmer\n"
        "assert SnowballStemmer('english').stem('running') == 'run'\n"
        "assert 0 < rouge_1_f('the runner is equal', 'the runners are equal') < 1"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_stemmer_of_an_nltk_that_is_there_already():
    program = (
        "import sys, nltk.stem; from evaltui.core.metrics.response_match import rouge_1_f\n"
        "assert 0 < rouge_1_f('the answer is equal', 'the answers are equal') < 1\n"
        "assert sys.modules['nltk'] is nltk"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
