"""When a rule lets a difference pass, and which rule holds."""

import copy

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from evaltui.core.compare.diff import align_calls, diff_args
from evaltui.core.compare.proposals import proposals
from evaltui.core.matching.rules import lets_pass, match_in_words, rules_of_case, same_args
from evaltui.core.model.arg_rule import ArgRule
from evaltui.core.model.json_values import ABSENT
from evaltui.core.model.outcome import ArgDiff, Call

MODEST = settings(max_examples=150, deadline=None)

scalars = st.none() | st.booleans() | st.integers(-20, 20) | st.floats(allow_nan=False) | st.text(max_size=4)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3),
    max_leaves=6,
)
arguments = st.none() | st.dictionaries(st.sampled_from(["a", "b", "c.d"]), values, max_size=3)
matches = st.sampled_from(["ignore", "type", "subset", "case_insensitive"]) | st.one_of(
    st.builds(lambda regex: {"regex": regex}, st.sampled_from([r"\d+", ".*", "x"])),
    st.builds(lambda size: {"approx": {"abs": size}}, st.sampled_from([0, 0.5, 10])),
    st.builds(lambda some: {"any_of": some}, st.lists(scalars, min_size=1, max_size=3)),
)
given_rules = st.lists(
    st.fixed_dictionaries(
        {
            "tool": st.just("f"),
            "arg": st.sampled_from(["*", "a", "a.x", "a[*]", "a[0].x", "b", "['c.d']", "['c.d'].y"]),
            "match": matches,
        },
        optional={"set": st.just("s"), "case": st.just("c")},
    ),
    max_size=4,
)


def rules(*given_, eval_set_id="s", eval_id="c"):
    made = [ArgRule.model_validate({"tool": "f", **one}) for one in given_]
    return rules_of_case(made, eval_set_id, eval_id)


def rule(arg, match, **scope):
    return {"arg": arg, "match": match, **scope}


def same(expected, actual, *given_):
    return same_args("f", expected, actual, rules(*given_))


def passes(match, expected, actual):
    made = ArgRule.model_validate({"tool": "f", "arg": "a", "match": match})
    return lets_pass(made.match, expected, actual)


class TestMatches:
    @pytest.mark.parametrize(
        ("match", "expected", "actual", "passing"),
        [
            ("ignore", 1, {"x": []}, True),
            ("ignore", ABSENT, 1, True),
            ("ignore", 1, ABSENT, True),
            ({"regex": r"\d{4}-\d\d-\d\d"}, "2026-01-01", "2030-12-31", True),
            ({"regex": r"\d{4}-\d\d-\d\d"}, "2026-01-01", "2030-12-31T10:00", False),
            ({"regex": r"\d+"}, "x", 17, True),
            ({"regex": r"\d+"}, "x", 17.5, False),
            ({"regex": "true|null"}, "x", True, False),
            ({"regex": "null"}, "x", None, False),
            ({"regex": ".*"}, "x", ABSENT, False),
            ({"regex": ".*"}, "x", ["x"], False),
            ({"approx": {"abs": 0.1}}, 19.5, 19.6, True),
            ({"approx": {"abs": 0.1}}, 19.5, 19.61, False),
            ({"approx": {"rel": 0.1}}, 100, 110, True),
            ({"approx": {"rel": 0.1}}, 110, 98, False),
            ({"approx": {"rel": 0.1}}, -100, -91, True),
            ({"approx": {"abs": 1, "rel": 0.1}}, 1, 2, True),
            ({"approx": {"abs": 1}}, 1, "1", False),
            ({"approx": {"abs": 1}}, 0, True, False),
            ({"approx": {"abs": 1}}, float("inf"), 1.0, False),
            ({"approx": {"rel": 0.5}}, 10**400, 10**400 + 1, True),
            ({"any_of": [19, "19"]}, 20, "19", True),
            ({"any_of": [[1], None]}, 20, None, True),
            ({"any_of": [19]}, "19", 20, False),
            ({"any_of": [None]}, 1, ABSENT, False),
            ("type", "late", "open", True),
            ("type", 19, 20.5, True),
            ("type", 19, "20", True),
            ("type", " 1e3 ", 1, True),
            ("type", 19, "twenty", False),
            ("type", 2, True, False),
            ("type", True, False, True),
            ("type", {}, {"x": 1}, True),
            ("type", [], {}, False),
            ("type", None, "x", False),
            ("subset", {"x": {"y": 1}}, {"x": {"y": 1, "z": 2}, "w": 3}, True),
            ("subset", {"x": {"y": 1, "z": 2}}, {"x": {"y": 1}}, False),
            ("subset", [2, 1], [1, 3, 2], True),
            ("subset", [1, 1], [1, 2], False),
            ("subset", "ab", "abc", False),
            ("subset", [], {}, False),
            ("case_insensitive", "Straße", "STRASSE", True),
            ("case_insensitive", "Kitchen", "Kitchen ", False),
            ("case_insensitive", ["A"], ["a"], False),
        ],
    )
    def test_what_each_lets_pass(self, match, expected, actual, passing):
        assert passes(match, expected, actual) is passing

    @MODEST
    @given(matches, values)
    def test_equal_values_pass_whatever_a_match_says(self, match, value):
        assert passes(match, value, copy.deepcopy(value))

    @MODEST
    @given(values, values)
    def test_every_proposal_lets_both_values_pass(self, expected, actual):
        made = proposals(expected, actual)
        assert made[-1].match == "ignore"
        assert all(passes(one.match, expected, actual) for one in made)
        assert len({one.words for one in made}) == len(made)


class TestWhichRuleHolds:
    @pytest.mark.parametrize(
        ("weaker", "stronger"),
        [
            ({}, {"set": "s"}),
            ({"set": "s"}, {"case": "c"}),
            ({"case": "c"}, {"set": "s", "case": "c"}),
        ],
    )
    @pytest.mark.parametrize("turned_around", [False, True])
    def test_the_one_that_is_for_fewer_cases(self, weaker, stronger, turned_around):
        both = [rule("a", "ignore", **weaker), rule("a", {"any_of": [2]}, **stronger)]
        both = both[::-1] if turned_around else both
        assert same({"a": 1}, {"a": 2}, *both)
        assert not same({"a": 1}, {"a": 3}, *both)

    def test_of_other_sets_and_cases_none(self):
        for scope in ({"set": "t"}, {"case": "d"}, {"set": "t", "case": "c"}, {"set": "s", "case": "d"}):
            assert not same({"a": 1}, {"a": 2}, rule("a", "ignore", **scope))
        assert not rules(rule("a", "ignore", set="s"), eval_set_id="t")

    def test_the_one_for_the_narrower_place(self):
        both = [rule("filter.as_of", {"regex": r"\d{4}"}), rule("filter", "ignore")]
        expected = {"filter": {"as_of": "2026", "by": "Ann"}}
        assert same(expected, {"filter": {"as_of": "2030", "by": "Bob"}}, *both)
        assert same(expected, {"filter": {"as_of": "2030", "more": 1}}, *both)
        assert not same(expected, {"filter": {"as_of": "soon", "by": "Ann"}}, *both)
        # What the narrower rule wants is not there to be looked at.
        assert not same(expected, {"filter": {"by": "Bob"}}, *both)
        assert not same(expected, {"filter": "all"}, *both)
        assert not same(expected, {}, *both)

    def test_a_rule_for_this_case_beats_a_narrower_one_for_all(self):
        both = [rule("filter.as_of", {"regex": r"\d{4}"}), rule("filter", "ignore", case="c")]
        assert same({"filter": {"as_of": "2026"}}, {"filter": {"as_of": "soon"}}, *both)
        assert same({"filter": {"as_of": "2026"}}, {}, *both)

    def test_an_index_beats_any_index(self):
        both = [rule("items[0]", {"any_of": [7]}), rule("items[*]", "ignore")]
        assert same({"items": [1, 2]}, {"items": [7, 9]}, *both)
        assert not same({"items": [1, 2]}, {"items": [8, 9]}, *both)

    def test_of_two_for_the_same_place_the_later_one(self):
        both = [rule("a", "ignore"), rule("a", "type")]
        assert not same({"a": 1}, {"a": "x"}, *both)
        assert same({"a": 1}, {"a": "x"}, *both[::-1])

    def test_what_is_inside_counts_for_the_rule_around_only_without_its_own(self):
        both = [rule("o", {"any_of": [{"id": 1, "n": 2}]}), rule("o.id", "ignore")]
        assert same({"o": {"id": 5, "n": 1}}, {"o": {"id": 9, "n": 2}}, *both)
        assert not same({"o": {"id": 5, "n": 1}}, {"o": {"id": 1, "n": 3}}, *both)


class TestPlaces:
    def test_names_with_dots(self):
        assert same({"a.b": 1}, {"a.b": 2}, rule("['a.b']", "ignore"))
        assert not same({"a.b": 1}, {"a.b": 2}, rule("a.b", "ignore"))
        assert same({"a": {"b": 1}}, {"a": {"b": 2}}, rule("a.b", "ignore"))
        assert not same({"a": {"b": 1}}, {"a": {"b": 2}}, rule("['a.b']", "ignore"))

    def test_a_missing_or_extra_argument_can_only_be_ignored(self):
        assert same({"a": 1}, {}, rule("a", "ignore"))
        assert same(None, {"a": 1}, rule("a", "ignore"))
        for match in ("type", {"regex": ".*"}, {"any_of": [1, None]}, "subset"):
            assert not same({"a": 1}, {}, rule("a", match))
            assert not same({}, {"a": 1}, rule("a", match))

    def test_items_of_lists(self):
        expected = {"items": [{"id": 1, "n": 1}, {"id": 2, "n": 2}]}
        ids = rule("items[*].id", "ignore")
        assert same(expected, {"items": [{"id": 8, "n": 1}, {"n": 2}]}, ids)
        assert not same(expected, {"items": [{"id": 8, "n": 1}]}, ids)
        assert same(expected, {"items": [{"id": 8, "n": 1}]}, rule("items[*]", "ignore"))
        assert not same(expected, {"items": [{"id": 1, "n": 1}]}, rule("items[0]", "ignore"))
        assert same(expected, {"items": expected["items"][::-1]}, rule("items", "subset"))

    def test_all_arguments_together(self):
        assert same(None, {}, rule("*", "ignore"))
        assert not same(None, {}, rule("a", "ignore"))
        assert same({"a": 1}, {"a": 1, "b": 2}, rule("*", "subset"))
        assert not same({"a": 1}, {"a": 2, "b": 2}, rule("*", "subset"))
        assert same({"a": 1}, {"a": 3, "b": 2}, rule("*", "subset"), rule("a", "ignore"))

    def test_a_rule_is_for_one_tool(self):
        assert not same_args("g", {"a": 1}, {"a": 2}, rules(rule("a", "ignore")))


class TestProperties:
    @MODEST
    @given(given_rules, arguments)
    def test_equal_calls_do_not_depend_on_rules(self, some, args):
        assert same(args, copy.deepcopy(args), *some)
        expected, actual = Call("f", args), Call("f", copy.deepcopy(args))
        assert align_calls([expected], [actual], rules=rules(*some)) == align_calls([expected], [actual])

    @MODEST
    @given(arguments, arguments)
    def test_ignoring_everything_is_ignoring_the_arguments(self, expected, actual):
        assert same(expected, actual, rule("*", "ignore"))
        each = [rule(f"[{name!r}]", "ignore") for name in {**(expected or {}), **(actual or {})}]
        if each:
            assert same(expected, actual, *each)

    @MODEST
    @given(given_rules, arguments, arguments)
    def test_calls_are_the_same_exactly_where_no_row_of_the_diff_differs(self, some, expected, actual):
        in_force = rules(*some)
        assume(expected != actual)
        rows = diff_args(expected, actual, in_force.get("f"))
        assert same_args("f", expected, actual, in_force) is all(row.op == "same" for row in rows)

    @MODEST
    @given(given_rules, arguments, arguments)
    def test_rules_change_no_row_but_those_that_they_let_pass(self, some, expected, actual):
        rows = diff_args(expected, actual, rules(*some).get("f"))
        for before, after in zip(diff_args(expected, actual), rows, strict=True):
            assert (before.path, before.expected, before.actual) == (after.path, after.expected, after.actual)
            if after.rule:
                assert (before.op != "same", after.op) == (True, "same")
            else:
                assert before == after

    @MODEST
    @given(arguments, arguments, st.sampled_from(["a", "b", "['c.d']"]))
    def test_an_ignored_argument_is_as_if_it_were_not_there(self, expected, actual, arg):
        name = "c.d" if "." in arg else arg
        left = [
            {key: value for key, value in (args or {}).items() if key != name} for args in (expected, actual)
        ]
        assume(name in {**(expected or {}), **(actual or {})})
        assert same(expected, actual, rule(arg, "ignore")) is (left[0] == left[1])


class TestDiff:
    def test_what_a_rule_lets_pass_is_the_same_and_names_it(self):
        in_force = rules(rule("degrees", {"approx": {"abs": 0.5}}), rule("note", "ignore"))
        expected = Call("f", {"room": "Kitchen", "degrees": 19})
        (row,) = align_calls(
            [expected], [Call("f", {**expected.args, "degrees": 19.5, "note": "x"})], rules=in_force
        )
        assert row.op == "same"
        assert row.args == (
            ArgDiff("room", "same", "Kitchen", "Kitchen"),
            ArgDiff("degrees", "same", 19, 19.5, "± 0.5"),
            ArgDiff("note", "same", None, "x", "ignore (extra)"),
        )

    def test_beside_a_difference_that_stays(self):
        expected, actual = {"a": 1, "b": {"x": 1}}, {"a": 2, "b": {"x": 2}}
        (row,) = align_calls([Call("f", expected)], [Call("f", actual)], rules=rules(rule("b", "type")))
        assert row.op == "changed"
        assert [(arg.path, arg.op, arg.rule) for arg in row.args] == [
            ("a", "changed", ""),
            ("b.x", "same", "type, for b"),
        ]

    def test_equal_calls_are_paired_before_those_that_a_rule_makes_the_same(self):
        expected = [Call("f", {"a": 1}), Call("f", {"a": 2})]
        rows = align_calls(expected, [Call("f", {"a": 2})], rules=rules(rule("a", "ignore")))
        assert [(row.op, bool(row.args)) for row in rows] == [("missing", False), ("same", False)]

    def test_a_call_that_a_rule_makes_the_same_moves(self):
        expected = [Call("f", {"a": 1}), Call("g", {}), Call("h", {})]
        actual = [Call("g", {}), Call("h", {}), Call("f", {"a": 2})]
        rows = align_calls(expected, actual, rules=rules(rule("a", "ignore")))
        assert [row.op for row in rows] == ["same", "same", "moved"]
        assert [arg.rule for arg in rows[-1].args] == ["ignore"]

    def test_ignored_arguments_need_no_rule(self):
        (row,) = align_calls(
            [Call("f", {"a": 1})], [Call("f", {"a": 2})], ignore_args=True, rules=rules(rule("a", "type"))
        )
        assert (row.op, row.args) == ("same", ())


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("case_insensitive", "case insensitive"),
        ({"regex": r"\d+"}, r"regex \d+"),
        ({"approx": {"abs": 1.0, "rel": 0.05}}, "± 1 or 5 %"),
        ({"any_of": [19, "19"]}, 'one of 19, "19"'),
        ({"regex": 3, "x": 1}, '{"regex": 3, "x": 1}'),
        (None, "null"),
    ],
)
def test_in_words(data, words):
    assert match_in_words(data) == words
