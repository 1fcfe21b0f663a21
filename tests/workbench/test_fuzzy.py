"""Jumping to a case by a few of its letters."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaltui.project.eval_set_file import EvalSetFile
from evaltui.workbench.cases.case_list import rank_cases
from tests.listed_cases import listed_case as case

SETS = (
    EvalSetFile(
        Path("a"),
        "a",
        "orders",
        "",
        "",
        "eval set",
        (
            case("relate", 1, ("hello",)),
            case("too_late_again", 1, ("My parcel is late",)),
            case("late_order", 1, ("Where is my parcel?",)),
            case("late", 1, ("Hello",)),
            case("book_hotel", 1, ("A room, please", "For two")),
            case("Straße", 1, ("",)),
        ),
    ),
    EvalSetFile(
        Path("b"), "b", "travel", "", "", "eval set", (case("late", None, ("A flight",)), case("", 0))
    ),
)


def found(query, limit=50):
    return [(jump.case.path, jump.case.eval_id) for jump in rank_cases(query, SETS, limit)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("late", ["late", "late", "late_order", "too_late_again", "relate"]),
        ("bkh", ["book_hotel"]),
        ("hotel", ["book_hotel"]),
        ("for two", ["book_hotel"]),
        ("late trav", ["late"]),
        ("LATE parcel", ["late_order", "too_late_again"]),
        ("strasse", ["Straße"]),
        ("", []),
        ("  ", []),
        ("zzz", []),
        ("[", []),
    ],
)
def test_the_best_comes_first(query, expected):
    assert [eval_id for _, eval_id in found(query)] == expected


def test_equal_ones_come_in_the_order_of_the_files_and_no_more_than_asked_for():
    assert found("late", 2) == [("a", "late"), ("b", "late")]


def test_the_letters_that_were_typed_are_marked():
    jump = rank_cases("bkh", SETS)[0]
    assert [jump.case.eval_id[place] for place in jump.marked] == list("bkh")
    jump = next(jump for jump in rank_cases("late", SETS) if jump.case.eval_id == "too_late_again")
    assert jump.marked == (4, 5, 6, 7)
    assert rank_cases("strasse", SETS)[0].marked == ()


@given(st.text(alphabet="late_bok hrß", max_size=6))
def test_what_is_found_holds_the_letters_in_their_order(query):
    jumps = rank_cases(query, SETS)
    assert [jump.score for jump in jumps] == sorted((jump.score for jump in jumps), reverse=True)
    for jump in jumps:
        texts = next(
            one.outline.texts for entry in SETS for one in entry.cases if one.eval_id == jump.case.eval_id
        )
        everything = f"{jump.case.eval_id} {jump.set_id} {' '.join(texts)} A flight".casefold()
        for word in query.casefold().split():
            letters = iter(everything)
            assert all(letter in letters for letter in word)


def test_letters_that_are_not_all_there_are_not_tried_in_every_way():
    # Tried in every way this would not end before the time-out of the test.
    long = EvalSetFile(Path("c"), "c", "long", "", "", "eval set", (case("e" * 2_000, 1, ()),))

    assert rank_cases("eeeeeeeeeeeeeeeq", [long]) == []
