"""Texts score as in google-adk, in every script."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from metric_cases import metric_input, thresholds, turn

from evaltui.core.metrics.registry import run_metric
from evaltui.core.metrics.response_match import rouge_1_f

eval_case = pytest.importorskip("google.adk.evaluation.eval_case")
eval_metrics = pytest.importorskip("google.adk.evaluation.eval_metrics")
adk = pytest.importorskip("google.adk.evaluation.final_response_match_v1")

pytestmark = pytest.mark.compat

NAME = "response_match_score"

# Words for every rule of the stemmer, and for those in which NLTK's differs from Porter's paper.
ENGLISH = (
    "running runs ran runner happily happiness ties dies skies lying news innings outing cannings"
    " proceed exceeds succeeding agreed feed conditional rational hopefully fully possibly ably"
    " analogy archaeology generalizations oscillators relational traveled hopping falling filing"
    " sky say syzygy cries ponies caress cats at as sing singing eed bled ing sses universe university"
)
STEMMED = ENGLISH.split()
OTHER = [
    *("正解です", "テスト", "ﾃｽﾄ", "東京Tower", "한국어", "정답", "繁體中文", "𠮷野家", "々〆", "ー"),
    *("ที่นี่", "น้ำ", "๑๒๓", "ฯลฯ", "฿50", "ພາສາລາວ", "ភាសាខ្មែរ", "មិន", "မြန်မာ", "ဘာသာ၊"),
    *("правильно", "Ёлка", "العربية", "مُدَرِّسَة", "עברית", "हिन्दी", "தமிழ்", "Ελληνικά", "ΣΊΣΥΦΟΣ"),
    *("café", "cafe\u0301", "İstanbul", "straße", "ﬁne", "Ⅷ", "½", "x²", "１２３", "naïve_word", "é"),
    *("snake_case", "isn't", "e-mail", "3.14", "10,000", "👍", "👩‍👩‍👧", "!!", "—", "\u200b"),
]
LETTERS = st.sampled_from("aesingdyliotuzXE9")
# Characters at the edges of the ranges that are cut into single characters or clusters.
BOUNDS = [0x4E00, 0x9FFF, 0x3040, 0x309F, 0x30A0, 0x30FF, 0xAC00, 0xD7AF]
BOUNDS += [0x0E00, 0x0E7F, 0x0E80, 0x0EFF, 0x1780, 0x17FF, 0x1000, 0x109F]
EDGES = [chr(code + step) for code in BOUNDS for step in (-1, 0, 1)]

tokens = st.one_of(
    st.sampled_from(STEMMED),
    st.sampled_from(OTHER),
    st.text(LETTERS, min_size=1, max_size=9),
    st.text(st.sampled_from(EDGES), min_size=1, max_size=3),
    st.text(max_size=4),
)
separators = st.sampled_from([" ", "", "\n", "、", ", ", "_", "\u3000", "\u0301"])
lists_of_tokens = st.lists(st.tuples(tokens, separators), max_size=8)


@st.composite
def text_pairs(draw):
    """Two texts that often share most of their words, in another order or another spelling."""
    words = draw(lists_of_tokens)
    others = draw(st.permutations(words))[: draw(st.integers(0, len(words)))]
    others = others + draw(st.lists(st.tuples(tokens, separators), max_size=2))
    form = draw(st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]))
    case = draw(st.sampled_from([str.lower, str.upper, str.title, str]))
    return _joined(words), case(unicodedata.normalize(form, _joined(others)))


def _joined(words):
    return "".join(word + separator for word, separator in words)


def rouge_by_adk(candidate, reference):
    return adk._calculate_rouge_1_scores(candidate, reference).fmeasure


@given(pair=text_pairs())
def test_f_measure_is_that_of_adk(pair):
    assert rouge_1_f(*pair) == pytest.approx(rouge_by_adk(*pair), abs=1e-12)


@given(text=lists_of_tokens.map(_joined))
def test_equal_texts_score_as_in_adk(text):
    assert rouge_1_f(text, text) == rouge_by_adk(text, text)


@pytest.mark.parametrize("word", STEMMED + OTHER)
def test_each_word_is_the_one_that_adk_scores(word):
    assert rouge_1_f(word, f"{word} {word}s") == pytest.approx(
        rouge_by_adk(word, f"{word} {word}s"), abs=1e-12
    )


parts = st.fixed_dictionaries(
    {"text": st.sampled_from(["", "It is noon.", "正解です", "Noon it is", "I think it is noon"])},
    optional={"thought": st.booleans()},
) | st.just({"function_call": {"name": "get_time"}})
responses = st.none() | st.fixed_dictionaries({}, optional={"parts": st.lists(parts, max_size=3)})


@given(
    conversation=st.lists(st.tuples(responses, responses), max_size=3),
    threshold=thresholds,
    with_criterion=st.booleans(),
)
def test_scores_and_verdicts_are_those_of_adk_when_thoughts_are_scored(
    conversation, threshold, with_criterion
):
    expected = [turn(final_response=response) for response, _ in conversation]
    actual = [turn(final_response=response) for _, response in conversation]
    metric = {"metric_name": NAME, "threshold": threshold}
    if with_criterion:
        metric["criterion"] = {"threshold": threshold}
    theirs = adk.RougeEvaluator(eval_metrics.EvalMetric.model_validate(metric)).evaluate_invocations(
        [eval_case.Invocation.model_validate(each) for each in actual],
        [eval_case.Invocation.model_validate(each) for each in expected],
    )

    ours = run_metric(
        metric_input(
            NAME,
            expected=expected,
            actual=actual,
            threshold=threshold,
            criterion={} if with_criterion else None,
            thoughts=True,
        )
    )

    assert ours.status.value == theirs.overall_eval_status.name
    assert ours.score == pytest.approx(theirs.overall_score, abs=1e-12)
    assert [each.status.value for each in ours.per_invocation] == [
        each.eval_status.name for each in theirs.per_invocation_results
    ]
    assert [each.score for each in ours.per_invocation] == pytest.approx(
        [each.score for each in theirs.per_invocation_results], abs=1e-12
    )
