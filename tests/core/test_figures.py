from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaltui.text.figures import (
    UNKNOWN,
    counted,
    plural,
    score_figures,
    short_list,
    show_duration,
    show_elapsed,
    show_growth,
    show_moment,
    show_number,
    show_points,
    show_rate,
    show_score,
    show_scores,
    show_size,
)

# A local time, whatever the zone is in which the tests run.
NOW = datetime(2026, 11, 22, 14, 5).astimezone()


def test_counts_and_plurals():
    assert counted(1, "case") == "1 case"
    assert counted(0, "case") == "0 cases"
    assert counted(12_431, "token") == "12,431 tokens"
    assert counted(1, "call waits", "calls wait") == "1 call waits"
    assert counted(2, "entry", "entries") == "2 entries"
    assert counted(None, "call") == "— calls"
    assert plural(1, "exists", "exist") == "exists"


def test_a_list_names_three():
    assert short_list(["a", "b", "c"]) == "a, b, c"
    assert short_list(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"
    assert short_list(["a", "b"], 1) == "a and 1 more"
    assert short_list([]) == ""


def test_an_unknown_number_is_no_zero():
    assert show_score(None) == show_number(None) == show_duration(None) == UNKNOWN == "—"


@pytest.mark.parametrize(
    ("score", "threshold", "text"),
    [
        (0.62, 0.8, "0.62 < 0.80"),
        (0.7988, 0.8, "0.799 < 0.800"),
        (0.79999, 0.8, "0.799 < 0.800"),
        (0.8000001, 0.8, "0.801 ≥ 0.800"),
        (0.5, None, "0.50"),
        (None, 0.8, "not scored"),
        (0.8, 0.8, "0.80 ≥ 0.80"),
        (0.0, 0.0001, "0.00 < 0.0001"),
        (0.0001, 0.0001, "0.0001 ≥ 0.0001"),
        (0.0002, 0.0001, "0.0002 ≥ 0.0001"),
        (0.0007, 0.0006, "0.0007 ≥ 0.0006"),
        (0.0, 0.0, "0.00 ≥ 0.00"),
    ],
)
def test_scores_can_be_told_from_their_threshold(score, threshold, text):
    assert show_scores(score, threshold) == text


def test_a_threshold_that_is_the_most_is_marked():
    assert show_scores(3.0, 2.0, at_most=True) == "3.00 > 2.00"


@given(st.floats(0, 5), st.floats(0, 5))
def test_scores_are_shown_on_their_side_of_the_threshold_with_few_decimals(score, threshold):
    figure, needed = score_figures(score, threshold)
    assert (figure == needed) == (score == threshold)
    assert (float(figure) < float(needed)) == (score < threshold)
    if threshold >= 0.01:
        assert all(len(text.partition(".")[2]) <= 3 for text in (figure, needed))


@pytest.mark.parametrize(
    ("value", "text"),
    [(3.0, "3"), (0.125, "0.125"), (1412.0, "1,412"), (1 / 3, "0.333"), (-0.5, "-0.5"), (0, "0")],
)
def test_numbers(value, text):
    assert show_number(value) == text


@pytest.mark.parametrize(
    ("rate", "text"), [(0, "0%"), (1, "100%"), (0.44, "44%"), (0.9999, "99%"), (0.0001, "1%"), (0.995, "99%")]
)
def test_a_rate_is_all_or_none_only_where_it_is(rate, text):
    assert show_rate(rate) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 ms"),
        (0.0002, "<1 ms"),
        (0.0041, "4 ms"),
        (0.09949, "99 ms"),
        (0.0996, "0.10 s"),
        (0.612, "0.61 s"),
        (0.9951, "1.0 s"),
        (1.24, "1.2 s"),
        (14.52, "14.5 s"),
        (30, "30 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min"),
        (134.2, "2 min 14 s"),
        (185, "3 min 05 s"),
        (3599.7, "1 h"),
        (3900, "1 h 05 min"),
        (100_000, "27 h 47 min"),
    ],
)
def test_a_time_span_has_at_most_two_units(seconds, text):
    assert show_duration(seconds) == text


@pytest.mark.parametrize(("seconds", "text"), [(7.9, "0:07"), (65, "1:05"), (3_905, "1:05:05")])
def test_the_clock_of_what_runs(seconds, text):
    assert show_elapsed(seconds) == text


@pytest.mark.parametrize(
    ("before", "text"),
    [
        (timedelta(), "0 s ago"),
        (timedelta(seconds=59), "59 s ago"),
        (timedelta(minutes=1), "1 min ago"),
        (timedelta(seconds=3_599), "59 min ago"),
        (timedelta(hours=2), "today 12:05"),
        (timedelta(hours=20), "21 Nov 18:05"),
        (timedelta(days=400), "18 Oct 2025"),
        # The clock was put back.
        (timedelta(minutes=-5), "0 s ago"),
    ],
)
def test_moments(before, text):
    assert show_moment(NOW - before, NOW) == text
    assert show_moment((NOW - before).astimezone(UTC), NOW.astimezone(UTC)) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(812, "812 B"), (1023, "1023 B"), (34_816, "34 KB"), (1_048_575, "1.0 MB"), (1_258_291, "1.2 MB")],
)
def test_sizes(count, text):
    assert show_size(count) == text


@pytest.mark.parametrize(
    ("before", "after", "growth", "points"),
    [(0.5, 0.64, "+28%", "+14 pts"), (0.8, 0.76, "−5%", "−4 pts"), (0.5, 0.4999, "+0%", "+0 pts")],
)
def test_a_change_has_a_sign_as_wide_as_a_plus(before, after, growth, points):
    assert show_growth(before, after) == growth
    assert show_points(before, after) == points
