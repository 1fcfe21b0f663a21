import json
from collections import Counter

import pytest
from google.genai import types
from hypothesis import given, settings
from hypothesis import strategies as st

from evaltui.core.compare.diff import (
    align_calls,
    calls_of,
    diff_args,
    diff_state,
    expectation_of,
)
from evaltui.core.matching import pairing as matching
from evaltui.core.matching.rules import ToolRules, rules_of_case
from evaltui.core.model.arg_rule import ArgRule
from evaltui.core.model.eval_set import IntermediateData, Invocation, InvocationEvents
from evaltui.core.model.outcome import ArgDiff, Call, CallDiff, StateDiff

MODEST = settings(max_examples=120, deadline=None)

scalars = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.5, 1.0, "", "1", "a"])
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3),
    max_leaves=6,
)
arguments = st.none() | st.dictionaries(st.sampled_from(["a", "b", "c.d"]), values, max_size=3)
calls = st.builds(Call, st.sampled_from(["f", "g"]), arguments)
simple_calls = st.builds(Call, st.sampled_from("fgh"), st.sampled_from([{}, {"n": 1}, {"n": 1, "m": 2}]))
trajectories = st.lists(simple_calls, max_size=7)


def call(name, **args):
    return Call(name, args)


def ops(rows):
    return [row.op for row in rows]


def shape(rows):
    """Rows as hashable text, whatever is in their arguments."""
    return Counter(json.dumps([row.op, side(row.expected), side(row.actual)]) for row in rows)


def side(one):
    return None if one is None else [one.name, one.args]


class TestAlignment:
    def test_a_changed_argument_is_one_change(self):
        (row,) = align_calls(
            [call("set", room="Kitchen", degrees=19)], [call("set", room="Kitchen", degrees="19")]
        )
        assert row.op == "changed"
        assert row.args == (
            ArgDiff("room", "same", "Kitchen", "Kitchen"),
            ArgDiff("degrees", "changed", 19, "19"),
        )

    def test_a_call_made_later_is_moved_to_where_it_was_made(self):
        f, g, h = call("f"), call("g"), call("h")
        rows = align_calls([f, g, h], [g, h, f])
        assert [(row.op, row.actual) for row in rows] == [("same", g), ("same", h), ("moved", f)]
        assert rows[2].expected == f
        assert [row.place for row in rows] == [None, None, 0]
        # Of equal calls, each has a place of its own.
        rows = align_calls([f, f, g], [g, f, f])
        assert [(row.op, row.place) for row in rows if row.op == "moved"] in (
            [("moved", 2)],
            [("moved", 0), ("moved", 1)],
        )

    @pytest.mark.parametrize(
        ("expected", "actual", "op"),
        [
            ({"n": 1}, {"n": 1.0}, "same"),
            ({"n": 1}, {"n": True}, "same"),
            ({"n": [0, {"x": 1}]}, {"n": [False, {"x": 1.0}]}, "same"),
            ({"n": 1}, {"n": "1"}, "changed"),
            ({"n": [1, 2]}, {"n": [2, 1]}, "changed"),
            ({"n": []}, {"n": {}}, "changed"),
            ({"a": 1, "b": 2}, {"b": 2, "a": 1}, "same"),
            (None, None, "same"),
            (None, {}, "changed"),
            ({"n": None}, {}, "changed"),
        ],
    )
    def test_equality_is_that_of_decoded_json(self, expected, actual, op):
        assert (expected == actual) is (op == "same")
        assert ops(align_calls([Call("f", expected)], [Call("f", actual)])) == [op]

    def test_no_arguments_and_empty_arguments_differ_as_a_whole(self):
        (row,) = align_calls([Call("f", None)], [Call("f", {})])
        assert row.args == (ArgDiff("", "changed", None, {}),)

    def test_ignored_arguments_make_calls_of_one_name_equal(self):
        rows = align_calls([call("f", n=1), call("g")], [call("g"), call("f", n=2)], ignore_args=True)
        assert Counter(ops(rows)) == {"same": 1, "moved": 1}

    def test_of_a_thousand_calls_each_is_compared_with_few(self, monkeypatch):
        compared = 0
        match = ToolRules.match

        def counted(*args):
            nonlocal compared
            compared += 1
            return match(*args)

        monkeypatch.setattr(ToolRules, "match", counted)
        rule = ArgRule(tool="f", arg="n", match={"approx": {"abs": 0.1}})
        expected = [call("f", n=n, all=True) for n in range(1000)]
        actual = [call("f", n=n + 0.5, all=True) for n in range(1000)]
        rows = align_calls(expected, actual, rules=rules_of_case([rule], "set", "case"))
        assert Counter(ops(rows)) == {"changed": 1000}
        assert compared < 60 * 1000

    def test_beyond_the_limit_common_calls_are_still_found(self, monkeypatch):
        monkeypatch.setattr(matching, "MAX_PAIRS", 30)
        expected = [call("f", n=n) for n in range(40)]
        actual = [call("start"), *expected[:20], call("f", n="x"), *expected[21:], call("end")]
        rows = align_calls(expected, actual)
        assert Counter(ops(rows)) == {"same": 39, "changed": 1, "extra": 2}

    @MODEST
    @given(st.lists(calls, max_size=6))
    def test_identical_sides_have_only_equal_calls(self, trajectory):
        assert set(ops(align_calls(trajectory, list(trajectory)))) <= {"same"}

    @MODEST
    @given(st.lists(calls, max_size=6), st.lists(calls, max_size=6), st.booleans())
    def test_every_call_is_in_exactly_one_row(self, expected, actual, ignore_args):
        rows = align_calls(expected, actual, ignore_args=ignore_args)
        seen_expected = [row.expected for row in rows if row.expected]
        seen_actual = [row.actual for row in rows if row.actual]
        assert sorted(map(id, seen_expected)) == sorted(map(id, expected))
        assert list(map(id, seen_actual)) == list(map(id, actual)), "actual calls stay in their order"
        unmoved = [id(row.expected) for row in rows if row.expected and row.op != "moved"]
        assert unmoved == [id(one) for one in expected if id(one) in unmoved]

    @MODEST
    @given(st.lists(calls, max_size=6), st.lists(calls, max_size=6), st.booleans())
    def test_each_row_says_what_it_is(self, expected, actual, ignore_args):
        for row in align_calls(expected, actual, ignore_args=ignore_args):
            sides = (row.expected is not None, row.actual is not None)
            assert sides == {"missing": (True, False), "extra": (False, True)}.get(row.op, (True, True))
            if row.expected and row.actual:
                assert row.expected.name == row.actual.name
                equal = ignore_args or row.expected.args == row.actual.args
                assert equal is (row.op != "changed")
            assert bool(row.args) is (row.op == "changed")

    @MODEST
    @given(st.lists(calls, max_size=6), st.lists(calls, max_size=6), st.booleans())
    def test_swapping_the_sides_mirrors_the_rows(self, expected, actual, ignore_args):
        there = align_calls(expected, actual, ignore_args=ignore_args)
        back = align_calls(actual, expected, ignore_args=ignore_args)
        names = {"missing": "extra", "extra": "missing"}
        mirrored = [CallDiff(names.get(row.op, row.op), row.actual, row.expected) for row in back]
        assert shape(there) == shape(mirrored)

    @MODEST
    @given(st.lists(calls, max_size=6), st.lists(calls, max_size=6))
    def test_no_equal_calls_are_left_over_on_both_sides(self, expected, actual):
        rows = align_calls(expected, actual)
        missing = [row.expected for row in rows if row.op == "missing"]
        assert not any(row.actual in missing for row in rows if row.op == "extra")

    @MODEST
    @given(st.data(), st.lists(calls, max_size=6), st.lists(calls, max_size=3))
    def test_in_any_order_no_call_differs_where_all_were_made(self, data, expected, more):
        actual = data.draw(st.permutations([*expected, *more]))
        rows = align_calls(expected, actual, any_order=True)
        assert set(ops(rows)) <= {"same", "moved", "extra"}
        assert len(rows) == len(actual)

    @MODEST
    @given(trajectories, trajectories)
    def test_only_an_exact_match_has_nothing_but_equal_calls(self, expected, actual):
        assert (set(ops(align_calls(expected, actual))) <= {"same"}) is (expected == actual)

    @MODEST
    @given(trajectories, trajectories)
    def test_no_cheaper_alignment_exists(self, expected, actual):
        rows = align_calls(expected, actual)
        found = sum(
            {"same": 0, "missing": 1, "extra": 1, "moved": 2}[row.op]
            if row.op != "changed"
            else change_cost(row.expected, row.actual)
            for row in rows
        )
        assert found == pytest.approx(cheapest(tuple(expected), tuple(actual)))


def change_cost(one, other):
    mine, theirs = one.args.items(), other.args.items()
    return 1 + 0.5 * len(mine ^ theirs) / (len(mine) + len(theirs))


def cheapest(expected, actual):
    """The definition, by trying everything."""
    if not expected or not actual:
        return len(expected) + len(actual)
    best = 1 + min(cheapest(expected[1:], actual), cheapest(expected, actual[1:]))
    if expected[0].name == actual[0].name:
        pair = 0 if expected[0] == actual[0] else change_cost(expected[0], actual[0])
        best = min(best, pair + cheapest(expected[1:], actual[1:]))
    return best


class TestArguments:
    def test_nested_differences_have_paths(self):
        expected = {"filter": {"as_of": "2026-01-01", "rooms": ["a", "b"]}, "limit": 3}
        actual = {"limit": 3, "filter": {"as_of": "2026-01-02", "rooms": ["a"]}, "odd key": {"x": 1}}
        assert diff_args(expected, actual) == (
            ArgDiff("filter.as_of", "changed", "2026-01-01", "2026-01-02"),
            ArgDiff("filter.rooms[0]", "same", "a", "a"),
            ArgDiff("filter.rooms[1]", "missing", "b", None),
            ArgDiff("limit", "same", 3, 3),
            ArgDiff("['odd key']", "extra", None, {"x": 1}),
        )

    def test_a_key_with_a_dot_is_not_a_path(self):
        paths = [one.path for one in diff_args({"a.b": 1, "a": {"b": 1}}, {"a": {"b": 1}})]
        assert paths == ["['a.b']", "a.b"]

    def test_another_kind_of_value_is_one_change(self):
        assert diff_args({"x": {"y": 1}}, {"x": [1]}) == (ArgDiff("x", "changed", {"y": 1}, [1]),)
        assert diff_args({"x": []}, {"x": {}}) == (ArgDiff("x", "changed", [], {}),)

    def test_none_is_a_value_and_absence_is_not(self):
        assert diff_args({"x": None}, {}) == (ArgDiff("x", "missing", None, None),)
        assert diff_args({"x": None}, {"x": 0}) == (ArgDiff("x", "changed", None, 0),)

    def test_arguments_against_none(self):
        assert diff_args({"x": 1}, None) == (ArgDiff("x", "missing", 1, None),)
        assert diff_args({}, None) == (ArgDiff("", "changed", {}, None),)
        assert diff_args(None, None) == diff_args({}, {}) == ()

    @MODEST
    @given(arguments, arguments)
    def test_nothing_differs_exactly_where_the_arguments_are_equal(self, expected, actual):
        differing = [one for one in diff_args(expected, actual) if one.op != "same"]
        assert (not differing) is (expected == actual)

    @MODEST
    @given(arguments, arguments)
    def test_swapping_the_sides_mirrors_the_differences(self, expected, actual):
        names = {"missing": "extra", "extra": "missing"}
        back = diff_args(actual, expected)
        mirrored = [ArgDiff(one.path, names.get(one.op, one.op), one.actual, one.expected) for one in back]
        assert sorted(map(repr, mirrored)) == sorted(map(repr, diff_args(expected, actual)))

    @MODEST
    @given(arguments, arguments)
    def test_no_path_is_given_twice(self, expected, actual):
        paths = [one.path for one in diff_args(expected, actual)]
        assert len(paths) == len(set(paths))


class TestState:
    def test_only_the_expected_keys_count(self):
        assert diff_state({"mode": "night"}, {"mode": "night", "user:name": "Ann"}) == ()

    def test_nested_values_are_compared_as_a_whole(self):
        assert diff_state({"lights": {"hall": "on"}}, {"lights": {"hall": "off", "bath": "on"}}) == (
            StateDiff("lights.hall", "on", "off"),
            StateDiff("lights.bath", None, "on"),
        )

    def test_a_key_that_is_absent_counts_as_none(self):
        assert diff_state({"error": None}, {}) == ()
        assert diff_state({"last": {"error": None}}, {"last": {}}) == ()
        assert diff_state({"last": {}}, {"last": {"error": None}}) == ()
        assert diff_state({"steps": [1]}, {"steps": [1, None]}) == (StateDiff("steps[1]", None, None),)
        assert diff_state({"mode": "night"}, {}) == (StateDiff("mode", "night", None),)


def invocation(**fields):
    return Invocation(user_content=types.Content(parts=[types.Part(text="hi")]), **fields)


def recorded(*parts):
    return InvocationEvents.model_validate(
        {"invocation_events": [{"author": "agent", "content": {"parts": list(parts)}}]}
    )


class TestExpectation:
    def test_absent_data_says_nothing(self):
        assert expectation_of(invocation()) == "unspecified"

    @pytest.mark.parametrize(
        "data",
        [
            IntermediateData(),
            IntermediateData(tool_uses=[]),
            InvocationEvents(),
            recorded({"text": "let me see"}),
        ],
    )
    def test_data_without_calls_forbids_them(self, data):
        assert expectation_of(invocation(intermediate_data=data)) == "no calls"

    @pytest.mark.parametrize(
        "data",
        [
            IntermediateData(tool_uses=[types.FunctionCall(name="f")]),
            recorded({"function_call": {"name": "f", "args": {}}}),
        ],
    )
    def test_calls_are_expected(self, data):
        assert expectation_of(invocation(intermediate_data=data)) == "these calls"


class TestTurn:
    def test_calls_keep_the_difference_between_no_and_empty_arguments(self):
        data = IntermediateData(
            tool_uses=[types.FunctionCall(name="f"), types.FunctionCall(name="f", args={})]
        )
        assert calls_of(data) == (Call("f", None), Call("f", {}))
