"""`answer_rules`: what an answer must keep whatever its words."""

from __future__ import annotations

import asyncio
from itertools import permutations

import pytest
from eval_data import make_case, make_turn

from evaltui import EvalCase, EvalConfig, Invocation, Status, score_case
from evaltui.core.metrics.answer_rules import quantities

EXPECTED = "The heating is set to 19 °C until 30 November 2026. Order SO-12 costs $1,412.50."


def result(rule, actual, expected=EXPECTED, **names):
    case = EvalCase.model_validate(make_case("late", make_turn("hi", expected)))
    turns = [Invocation.model_validate(make_turn("hi", actual))]
    config = EvalConfig.model_validate({"criteria": {}, "evaltui": {"answers": [{**rule, **names}]}})
    return asyncio.run(score_case(case, turns, config, eval_set_id="orders"))


SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
# The rule, the answer, and what of it is broken.
CHECKS = [
    ({"contains": ["Kitchen", "off"]}, "The  KITCHEN\nlight is off", ""),
    ({"contains": ["kitchen", "off"]}, "The kitchen light is on", 'lacks "off"'),
    ({"contains": ["the light"]}, "the\n  light", ""),
    ({"not_contains": ["refund"]}, "A REFUND came", 'has "refund"'),
    ({"not_contains": ["refund"]}, "We refunded you", ""),
    ({"contains": ["東京"]}, "在東京都", ""),
    ({"contains": ["готов"]}, "Заказ неготов", 'lacks "готов"'),
    ({"contains": ["cas"]}, "un casé", 'lacks "cas"'),
    ({"contains": ["19 °C"]}, "It is -19 °C", 'lacks "19 °C"'),
    ({"contains": ["$5"]}, "-$5", 'lacks "$5"'),
    ({"contains": ["$5"]}, "$5.99", 'lacks "$5"'),
    ({"contains": ["5 kg"]}, "2.5 kg", 'lacks "5 kg"'),
    ({"contains": ["500"]}, "12,500", 'lacks "500"'),
    ({"contains": ["500", "5 kg"]}, "Pay 500, or send 3-5 kg.", ""),
    ({"not_contains": ["refund"]}, "Nothing was paid", ""),
    ({"regex": r"\bSO-\d+\b"}, "see SO-77.", ""),
    ({"regex": r"\bSO-\d+\b"}, "see 77", r"does not match \bSO-\d+\b"),
    ({"json_schema": SCHEMA}, '{"n": 1}', ""),
    ({"json_schema": SCHEMA}, '{"n": "1"}', "does not fit its schema"),
    ({"json_schema": SCHEMA}, "one", "is not JSON"),
    ({"numbers": "equal"}, EXPECTED, ""),
    ({"numbers": "equal"}, "SO-12: 1412.5 USD; 2026-11-30, the heating has 19 degrees", ""),
    ({"numbers": "equal"}, EXPECTED.replace("19", "21"), "lacks 19 degree; has 21 degree, not expected"),
    ({"numbers": "equal"}, EXPECTED.replace("November", "December"), "lacks 2026-11-30"),
    ({"numbers": "equal"}, EXPECTED.replace("$", "€"), "lacks 1412.5 dollar"),
    ({"numbers": "equal"}, EXPECTED.replace("SO-12", "SO-13"), "lacks so-12"),
    ({"numbers": "equal"}, f"{EXPECTED} And 100 dollars back.", "has 100 dollar, not expected"),
    ({"contains": ["19"], "not_contains": ["°F"]}, "19 °F", 'has "°F"'),
]


SIDES = [
    ("from 5 to 6", "from 6 to 5", False),
    ("5-6 kg", "6 kg to 5 kg", False),
    ("19 °C to 21 °C", "21 °C to 19 °C", False),
    ("between 5 and 6", "6 and 5", True),
    ("5 to 6", "between 5 and 6", True),
    ("<5", ">5", False),
    ("≤ $5", ">= $5", False),
    ("<5", "less than 5", True),
    ("<5 kg and >7 kg", ">7 kg and <5 kg", True),
    ("a -> 5", "a < 5", True),
    ("17:00 UTC", "17:00 CET", False),
    ("5 pm EST", "17:00 PST", False),
    ("17:00 UTC", "17:00 GMT", True),
    ("17:00 UTC", "at 17:00", True),
    ("17:00 today", "17:00 tomorrow", True),
    ("at 10:00 (UTC)", "at 10:00 (CET)", False),
    ("at least 5 kg", "at most 5 kg", False),
    ("no more than $5", "more than $5", False),
    ("not less than 5", "at least 5", True),
    ("over 5", "5 are over", True),
    ("10 marathons", "10 March", False),
    ("10 marathons", "10 races", True),
    ("5 vs 3", "5 to 3", True),
    ("5 hours and a day", "5 hours plus a day", True),
]


@pytest.mark.parametrize(("expected", "actual", "passes"), SIDES)
def test_numbers_on_other_sides_are_not_equal(expected, actual, passes):
    assert (result({"numbers": "equal"}, actual, expected).status is Status.PASSED) is passes


@pytest.mark.parametrize(("rule", "actual", "broken"), CHECKS)
def test_an_answer_is_checked_whatever_its_words(rule, actual, broken):
    case = result(rule, actual)
    metric = case.metric("answer_rules")
    assert case.status is metric.status is (Status.FAILED if broken else Status.PASSED)
    assert broken in metric.reason


def events(*authors, answer="Done."):
    """A turn whose events have these authors; the last one responds."""
    said = [{"author": author, "content": {"parts": [{"text": "Wait"}]}} for author in authors[:-1]]
    data = {"invocation_events": [*said, *({"author": author, "content": None} for author in authors[-1:])]}
    return {**make_turn("hi", answer), "intermediate_data": data}


IMAGE = {"file_data": {"file_uri": "gs://b/ticket.png", "mime_type": "image/png"}}


def called(author, *parts):
    """A turn in which an agent writes a text, calls a tool and responds with parts, without a text."""
    steps = [{"text": "Wait"}, {"function_call": {"name": "book", "args": {}}}]
    data = {"invocation_events": [{"author": author, "content": {"parts": [step]}} for step in steps]}
    return {**make_turn("hi"), "final_response": {"parts": [*parts]}, "intermediate_data": data}


@pytest.mark.parametrize(
    ("turn", "status", "reason"),
    [
        (events("desk", "bookings"), Status.PASSED, ""),
        (events("bookings", "desk"), Status.FAILED, "from desk, not bookings"),
        (make_turn("hi", "Done."), Status.NOT_EVALUATED, "agent unknown"),
        (make_turn("hi"), Status.FAILED, "no response"),
        (events("desk", answer=""), Status.FAILED, "no response"),
        (events("bookings", answer=" "), Status.FAILED, "no response"),
        (called("bookings", {"text": ""}), Status.FAILED, "no response"),
        (called("bookings", {"text": "Hm", "thought": True}), Status.PASSED, ""),
        (called("desk", {"text": "Hm", "thought": True}), Status.FAILED, "from desk, not bookings"),
        (called("bookings", IMAGE), Status.NOT_EVALUATED, "agent unknown"),
    ],
)
def test_the_agent_that_responds_is_checked(turn, status, reason):
    case = EvalCase.model_validate(make_case("late", make_turn("hi")))
    config = EvalConfig.model_validate({"criteria": {}, "evaltui": {"answers": [{"agent": "bookings"}]}})
    scored = asyncio.run(score_case(case, [Invocation.model_validate(turn)], config))
    assert scored.status is status
    assert reason in scored.metric("answer_rules").reason


@pytest.mark.parametrize(
    ("names", "applies"),
    [
        ({}, True),
        ({"set": "orders"}, True),
        ({"set": "orders", "case": "late", "turn": 0}, True),
        ({"case": "late"}, True),
        ({"set": "other"}, False),
        ({"case": "early"}, False),
    ],
)
def test_a_check_holds_in_the_sets_cases_and_turns_that_it_names(names, applies):
    metrics = [metric.name for metric in result({"contains": ["x"]}, "y", **names).metrics]
    assert ("answer_rules" in metrics) is applies


@pytest.mark.parametrize(
    ("schema", "fits", "differs"),
    [
        ({"type": "string", "pattern": "^a"}, '"ab"', '"ba"'),
        ({"not": {"type": "string"}}, "1", '"b"'),
        ({"oneOf": [{"type": "integer"}, {"minimum": 1}]}, "0", "3"),
        ({"minLength": 2}, '"ab"', '"a"'),
        ({"type": "number", "multipleOf": 5, "exclusiveMinimum": 5}, "10", "5"),
        ({"multipleOf": 0.01}, "0.07", "0.075"),
        ({"uniqueItems": True, "maxItems": 2}, "[1, 2]", "[1, 1]"),
        ({"prefixItems": [{"type": "string"}], "items": False}, '["a"]', '["a", 1]'),
        ({"contains": {"const": 3}}, "[3]", "[1]"),
        (
            {"patternProperties": {"^x": {"type": "string"}}, "additionalProperties": False},
            '{"x": "1"}',
            '{"x": 1}',
        ),
        ({"propertyNames": {"pattern": "^a"}}, '{"a": 1}', '{"b": 1}'),
        ({"minProperties": 1}, '{"a": 1}', "{}"),
        ({"dependentRequired": {"a": ["b"]}}, '{"a": 1, "b": 1}', '{"a": 1}'),
        ({"if": {"required": ["a"]}, "then": {"required": ["b"]}}, "{}", '{"a": 1}'),
        ({"properties": {"a": False}}, '{"b": 1}', '{"a": 1}'),
        ({"$ref": "#/$defs/n", "$defs": {"n": {"maximum": 3}}}, "3", "4"),
        ({"type": "number"}, "1e9", "NaN"),
    ],
)
def test_an_answer_fits_a_schema_by_all_of_its_keywords(schema, fits, differs):
    assert result({"json_schema": schema}, fits).status is Status.PASSED
    assert result({"json_schema": schema}, differs).status is Status.FAILED


def test_a_schema_that_takes_too_long_decides_nothing():
    slow = {"json_schema": {"pattern": "(a|aa)+$"}}
    named = {"json_schema": {"patternProperties": {"(a|aa)+$": {"type": "string"}}}}
    assert result(named, f'{{"{"a" * 60}!": 1}}').status is Status.NOT_EVALUATED
    assert result(slow, f'"{"a" * 60}b"').status is Status.NOT_EVALUATED
    assert result({"json_schema": {}}, "[" * 100_000).status is not Status.PASSED


def test_a_check_that_cannot_be_decided_is_no_pass():
    case = result({"numbers": "equal"}, "19", expected=None)
    assert case.status is Status.NOT_EVALUATED
    assert case.metric("answer_rules").reason == "turn 1: numbers: no response expected to compare with"


def test_a_turn_that_does_not_run_is_no_pass():
    case = result({"contains": ["x"]}, "x", set="orders", case="late", turn=3)
    assert case.metric("answer_rules").status is Status.NOT_EVALUATED


@pytest.mark.parametrize(
    ("rules", "turns", "status"),
    [
        ([{"contains": ["Yes"]}, {"contains": ["No"], "turn": 1}], 1, Status.NOT_EVALUATED),
        ([{"contains": ["Yes"]}, {"contains": ["Yes"], "turn": 1}], 2, Status.PASSED),
        ([{"contains": ["Yes"]}], 1, Status.NOT_EVALUATED),
        ([{"contains": ["No"]}], 1, Status.FAILED),
    ],
)
def test_checks_that_hold_do_not_cover_for_a_turn_that_did_not_run(rules, turns, status):
    case = EvalCase.model_validate(make_case("late", make_turn("a"), make_turn("b")))
    actual = [Invocation.model_validate(make_turn(text, "Yes")) for text in ("a", "b")][:turns]
    rules = [{**rule, "set": "orders", "case": "late"} for rule in rules]
    config = EvalConfig.model_validate({"criteria": {}, "evaltui": {"answers": rules}})
    assert asyncio.run(score_case(case, actual, config, eval_set_id="orders")).status is status


@pytest.mark.parametrize(
    "rule",
    [
        {},
        {"contains": []},
        {"contains": [""]},
        {"regex": "("},
        {"numbers": "near"},
        {"json_schema": {"type": "integr"}},
        {"json_schema": {"$ref": "#/$defs/n"}},
        {"json_schema": {"$ref": "https://example.com/schema.json"}},
        {"json_schema": {"items": {"$id": "item", "$ref": "#"}}},
        {"json_schema": {"pattern": "("}},
        {"json_schema": {"properties": {"a": {"typ": "string"}}}},
        {"contains": ["x"], "turn": 0},
        {"contain": ["x"]},
    ],
)
def test_a_check_that_cannot_be_understood_is_refused(rule):
    with pytest.raises(ValueError):
        EvalConfig.model_validate({"evaltui": {"answers": [rule]}})


def test_adk_verdicts_know_no_checks():
    case = EvalCase.model_validate(make_case("late", make_turn("hi", "x")))
    config = EvalConfig.model_validate(
        {"criteria": {"response_match_score": 1.0}, "evaltui": {"answers": [{"contains": ["y"]}]}}
    )
    scored = asyncio.run(score_case(case, case.conversation, config, adk_verdicts=True))
    assert scored.status is Status.PASSED


UNITS = [
    *[("mg", "kg"), ("µg", "mg"), ("t", "kg"), ("tons", "kg"), ("W", "kW"), ("MW", "kW"), ("V", "kV")],
    *[("V", "mA"), ("hp", "kW"), ("bar", "psi"), ("tbsp", "tsp"), ("cl", "ml"), ("MHz", "GHz")],
    *[("nights", "weeks"), ("kJ", "kcal"), ("hectares", "acres"), ("dozen", "kg"), ("µs", "ms")],
]


# As models write them, and as a keyboard does.
TYPED = {
    "non\u2011refundable": "non-refundable",
    "the \u201cGold\u201d plan": 'the "Gold" plan',
    "\u00abGold\u00bb": '"Gold"',
    "re\u00adfund\u200b": "refund",
    "isn\u2018t": "isn't",
    "on 2026\u201111\u201130, SO\u201012": "on 2026-11-30, SO-12",
    "\u20115 degrees": "-5 degrees",
}


@pytest.mark.parametrize(("printed", "typed"), TYPED.items())
def test_typographic_marks_are_those_of_a_keyboard(printed, typed):
    for answer, text in ((printed, typed), (typed, printed)):
        assert result({"not_contains": [text]}, answer).status is Status.FAILED
        assert result({"contains": [text]}, answer).status is Status.PASSED
        assert result({"numbers": "equal"}, answer, expected=text).status is Status.PASSED


@pytest.mark.parametrize("texts", [*permutations(["19 °C", "$5", "2026-11-30", "SO-1"], 2)])
def test_the_order_of_numbers_says_nothing(texts):
    first, second = texts
    rule = {"numbers": "equal"}
    assert result(rule, f"{second}, {first}", expected=f"{first} and {second}").status is Status.PASSED


@pytest.mark.parametrize(
    ("expected", "same", "other"),
    [
        ("at 5:30 pm", "at 17:30", "at 5:30 am"),
        ("at 12 a.m.", "at 00:00", "at 12 p.m."),
        ("$5M", "5 million dollars", "$5"),
        ("5 million", "5,000,000", "5 billion"),
        ("20 degrees Celsius", "20 °C", "20 degrees Fahrenheit"),
        ("20 Celsius", "20 degrees", "20 °F"),
        ("5 GB", "5 gigabytes", "5 MB"),
        ("10 cm", "10 centimeters", "10 mm"),
        ("50 km/h", "50 kph", "50 mph"),
        ("5 ms", "5 milliseconds", "5 m"),
        ("10³", "10³", "103"),
        ("-$5", "minus 5 dollars", "$5"),
        ("–5 °C", "-5 degrees", "5 °C"),
        (".5 l", "0.5 liters", "5 l"),
        ("50%", "50 percent", "50"),
        ("50", "50 times", "50%"),
        ("5 %", "5%", "5 ‰"),
        ("$5", "5 dollars", "5"),
        ("5", "$5", "$6"),
        ("19 °C", "19 degrees; 19 is fine", "19 K"),
        ("17 °C to 19 °C", "17 to 19 °C", "17 to 19"),
        ("10 to 20%", "10%, 20%", "10% to 20"),
        ("$5-10", "$5 to $10", "€5-10"),
        ("5–10 kg", "5 to 10 kg", "5-10 lb"),
        ("won 3-2", "3-2 it is", "won 2-3"),
        ("10:00–11:00", "10 am to 11 am", "10:00-12:00"),
        ("2026-11-30", "30 November 2026", "2026-11-03"),
        ("USD 5", "US$5", "EUR 5"),
        ("CHF 5", "5 CHF", "5 EUR"),
        ("₹5", "5 rupees", "$5"),
        ("A$5", "A$5", "$5"),
        ("5 cents", "5¢", "$5"),
        ("5 hundred", "500", "5"),
        ("$5/day", "5 dollars a day", "$5 per hour"),
        ("$5 per day", "$5", "5 per day"),
        ("50 km/h", "50 km per hour", "50 km"),
        ("10 minus 5", "10, 5", "10, -5"),
        ("Nov 2026", "November of 2026", "Dec 2026"),
        ("12 000 €", "12,000 €", "12 000 000 €"),
        ("1\u202f000\u00a0250 zł", "1000250 zł", "1 250 000 zł"),
        ("1'000 CHF", "CHF 1000", "1'000'000 CHF"),
        ("5 000 - 6 000", "5000 to 6000", "5 000 - 6 500"),
        ("ZIP 02139", "02139 is it", "2139"),
        ("+49 030 123 456", "+49 030 123 456", "+49 030 456 123"),
        ("DE89 3704 0044 0532", "iban DE89 3704 0044 0532", "DE89 0044 3704 0532"),
        ("5 mg per day", "5 mg a day", "5 mg per hour"),
        ("2 tablets a day", "2 tablets per day", "2 tablets an hour"),
        ("100 requests per minute", "100 requests/minute", "100 requests per second"),
        ("$5 per user per month", "$5 / user / month", "$5 per user per year"),
        ("価格は500円です。", "お値段は500円になります。", "価格は600円です。"),
        ("500円です", "¥500", "$500"),
        ("가격은 500원입니다.", "가격은 500원이에요.", "가격은 5000원입니다."),
        ("会议在3点开始。", "会议3点开始。", "会议5点开始。"),
        ("05 minutes", "5 min", "50 min"),
        ("5s", "5 seconds", "5 min"),
        ("5 Mbps", "5 Mbit/s", "5 Gbps"),
        ("5 µg", "5 micrograms", "5 mg"),
        *((f"5 {unit}", f"5{unit}", f"5 {other}") for unit, other in UNITS),
    ],
)
def test_numbers_are_equal_by_magnitude_unit_and_half_of_the_day(expected, same, other):
    rule = {"numbers": "equal"}
    assert result(rule, same, expected=expected).status is Status.PASSED
    assert result(rule, other, expected=expected).status is Status.FAILED


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("-3 degrees; 12%", ["-3 degree", "12 percent"]),
        ("You paid $1,412.50 on Nov 3rd, at 14:05", ["1412.5 dollar", "11-03", "14:05"]),
        ("3 of 4 (75%)", ["3", "4", "75 percent"]),
        ("no digits at all", []),
    ],
)
def test_quantities_of_a_text(text, shown):
    assert [str(quantity) for quantity in quantities(text)] == shown
