"""A regex of the user's never hangs: it ends, and says which rule it was."""

import pytest
from eval_data import make_case, make_turn

from evaltui.core.matching.rules import lets_pass
from evaltui.core.model import regexes
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.eval_set import EvalCase
from evaltui.core.model.outcome import Status
from evaltui.core.model.problems import problems_of
from evaltui.core.model.regexes import Patience, SlowRegexError, check_regex, is_slow
from evaltui.core.scoring import score_case
from evaltui.project.config_references import ScoredSets

# In time that doubles with each letter.
SLOW = "(a|aa)+$"
LONG = "a" * 60 + "b"


@pytest.fixture(autouse=True)
def short_patience(monkeypatch):
    """Long enough to be asked, for the tests to be short."""
    monkeypatch.setattr(regexes, "_PROBE_PATIENCE", 0.02)
    monkeypatch.setattr(Patience, "__init__", lambda self, left=0.02: setattr(self, "left", left))
    monkeypatch.setattr(regexes, "_slow_matches", {})


def config(*regexes, **criteria):
    rules = [{"tool": "find", "arg": "query", "match": {"regex": one}} for one in regexes]
    return EvalConfig.model_validate(
        {"criteria": criteria or {"tool_trajectory_avg_score": 1.0}, "evaltui": {"rules": rules}}
    )


def case(query):
    calls = [{"name": "find", "args": {"query": query}}]
    return EvalCase.model_validate(make_case("one", make_turn("Find it", "Found.", calls=calls)))


async def scored(config, query):
    return await score_case(case("x"), case(query).conversation, config, eval_set_id="set")


@pytest.mark.parametrize("regex", ["(a+)+$", SLOW, "(a|a)*$", "(a?){30}a{30}", "(x+x+)+y"])
async def test_a_slow_regex_ends(regex):
    assert (await scored(config(regex), LONG)).status in (Status.ERROR, Status.FAILED)


async def test_a_rule_that_takes_too_long_is_an_error_that_names_it():
    result = await scored(config("x", "[xyz]", SLOW), LONG)

    assert result.status is Status.ERROR
    metric = result.repeats[0].metrics[0]
    assert (metric.status, metric.error.type) == (Status.ERROR, "SlowRuleError")
    assert metric.reason == (
        "the config: evaltui.rules[2].match.regex: (a|aa)+$ takes longer than 2 s on an argument of find. "
        "Avoid nested repeats"
    )
    # What is shown of the calls is without the rule.
    assert [call.op for call in result.repeats[0].turns[0].calls] == ["changed"]


async def test_all_the_regexes_of_a_scoring_have_one_patience():
    patience = Patience()
    with pytest.raises(SlowRegexError):
        patience.matches(SLOW, LONG)
    assert patience.left == 0
    with pytest.raises(SlowRegexError):
        patience.matches("[ab]+", LONG)
    assert Patience().matches("[ab]+", LONG)


def test_what_ran_out_of_time_once_is_not_tried_again(monkeypatch):
    with pytest.raises(SlowRegexError):
        Patience().matches(SLOW, LONG)
    monkeypatch.setattr("regex.fullmatch", lambda *given, **more: pytest.fail("it was tried again"))
    with pytest.raises(SlowRegexError):
        Patience().matches(SLOW, LONG)


async def test_a_metric_that_needs_no_rule_is_not_touched():
    result = await scored(config(SLOW, response_match_score=0.5), LONG)

    assert result.status is Status.PASSED


@pytest.mark.parametrize("regex", [SLOW, "(b|bb)+x", r"(\d|\d\d)+-"])
def test_lint_warns_of_a_slow_regex(regex):
    data = {"evaltui": {"rules": [{"tool": "t", "arg": "a", "match": {"regex": regex}}]}}
    (problem,) = problems_of("references", data, ScoredSets({}, {}))
    assert problem.path == ("evaltui", "rules", 0, "match", "regex")
    assert "can be very slow" in problem.message


@pytest.mark.parametrize("regex", [r"\d{4}-\d\d-\d\d", "[a-z]+@[a-z.]+", "(a+)b", "(yes|no)", ".*order.*"])
def test_lint_does_not_warn_of_others(regex):
    assert not is_slow(regex)


@pytest.mark.parametrize(
    ("regex", "problem"),
    [
        ("(a", "is not a regular expression: missing )"),
        ("(((a{1000}){1000}){1000})", "is too large: its repeats make 1,000,000,000 copies"),
        ("a{99999999999}", "is too large"),
        ("(?:a{200}){200}", "is too large"),
        (r"\p{L}", "is not a regular expression: bad escape"),
    ],
)
def test_a_regex_that_is_none_or_would_fill_the_memory_is_refused(regex, problem):
    with pytest.raises(ValueError, match="is") as refused:
        check_regex(regex)
    assert problem in str(refused.value)


@pytest.mark.parametrize("regex", ["a{1000}", r"(\d{3}){50}", "[{]{3}", "{x}", "a{,5}", "(?:(?:a{9}){9}){9}"])
def test_others_are_not(regex):
    check_regex(regex)


@pytest.mark.parametrize(
    ("expected", "actual", "same"),
    [
        ("Café", "CAFE\u0301", True),
        ("cafe\u0301", "CAFÉ", True),
        ("Straße", "STRASSE", True),
        ("Ǆ", "ǆ", True),
        ("ΐ", "\u03b9\u0308\u0301", True),
        ("각", "\u1100\u1161\u11a8", True),
        ("Å", "\u212b", True),
        ("cafe", "café", False),
        ("ﬁve", "FIVE", True),
        ("x²", "x2", False),
    ],
)
def test_upper_and_lower_case_however_unicode_writes_it(expected, actual, same):
    assert lets_pass("case_insensitive", expected, actual) is same
