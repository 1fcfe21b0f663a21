"""Plots as text."""

import pytest

from evaltui.text.lines import cells, draw
from evaltui.text.plots import bar, column_plot, histogram, sparkline, stacked_bar, waterfall_bar


def text(line):
    return "".join(part for part, _ in line)


def test_sparkline():
    line = sparkline([0.0, 0.5, 1.0, None, 3.0, -1.0], ["error", "", "", "muted", "", ""])
    assert text(line) == "▁▅█·█▁"
    assert [role for _, role in line] == ["error", "", "", "muted", "", ""]
    assert sparkline([], []) == []


def test_columns_have_the_newest_at_the_right_and_eighths_of_a_cell():
    lines = column_plot([0.1, 0.5, 1.0, 0.0], ["line", "line", "accent", "line"], 13, 2)
    assert [draw(line, color=False) for line in lines] == ["100%     █", "  0% ▂ █ █ ▁"]
    assert ("█ ", "accent") in lines[0]
    hollow = column_plot([0.1, 0.5, 1.0, 0.0], ["line"] * 4, 13, 2, hollow={0, 2, 3})
    assert [draw(line, color=False) for line in hollow] == ["100%     ─", "  0% ─ █   ▁"]
    assert [text(line) for line in column_plot([0.5] * 9, ["line"] * 9, 8, 1)] == ["100% ▄▄ "]
    assert text(column_plot([0.001], ["line"], 7, 1)[0]) == "100% ▁ "


@pytest.mark.parametrize(
    ("share", "threshold", "drawn"),
    [
        (0.0, None, "────────"),
        (0.5, 0.8, "━━━━──│─"),
        (0.97, 0.8, "━━━━━━│━"),
        (0.55, None, "━━━━╸───"),
        (1.0, 1.0, "━━━━━━━━"),
        (7.0, 0.0, "│━━━━━━━"),
    ],
)
def test_bar_with_a_threshold(share, threshold, drawn):
    assert text(bar(share, 8, "error", threshold)) == drawn


def test_outcomes_of_a_set_share_a_bar_and_none_is_lost():
    assert stacked_bar([(2, "success"), (3, "error")], 5, 8) == [("━━━", "success"), ("━━━━━", "error")]
    small = stacked_bar([(1, "success"), (1, "error"), (0, "warning")], 100, 8)
    assert small == [("━", "success"), ("━", "error"), ("──────", "line")]
    assert cells(stacked_bar([(500, "success"), (500, "error")], 1000, 1)) == 1


@pytest.mark.parametrize(
    ("begin", "end", "drawn"),
    [
        (0, 1, "━━━━━━━━━━━━━━━━"),
        (0, 0.5, "━━━━━━━━│   │   "),
        (0.25, 0.26, "    ╸   │   │   "),
        (0.3, 0.31, "    ╺   │   │   "),
        (1, 1, "    │   │   │  ╺"),
        (0, 0, "╸   │   │   │   "),
    ],
)
def test_waterfall_in_steps_of_half_a_cell(begin, end, drawn):
    line = waterfall_bar(begin, end, 1, 16, "model")
    assert text(line) == drawn
    assert waterfall_bar(0, 1, 0, 16, "model")[0] == ("╸", "model")


def test_a_histogram_has_what_passes_on_one_side_of_the_threshold():
    lines = histogram([(0.79, 1), (0.8, 2), (1.0, 1)], (0.0, 1.0), 0.8, 23, 2)
    assert [draw(line, color=False) for line in lines] == [
        "2                 │██",
        "                ██│████",
        "  ────────────────┴────",
        "  0              0.8  1",
    ]
    assert [role for _, role in lines[1]] == ["muted", "error", "bold", "success"]


@pytest.mark.parametrize("threshold", [-3.0, 0.0, 0.01, 0.5, 0.99, 1.0, 7.0])
@pytest.mark.parametrize("lower", [False, True])
def test_every_score_is_on_its_side(threshold, lower):
    for score in (0.0, 0.3, 0.5, 0.99, 1.0):
        line = histogram([(score, 1)], (0.0, 1.0), threshold, 40, 1, lower_is_better=lower)[0]
        passes = score <= threshold if lower else score >= threshold
        left, _, right = text(line)[2:].partition("│")
        assert ("█" in right) is (passes != lower)
        assert ("█" in left) is (passes == lower)
        assert ("██", "success" if passes else "error") in [(part.strip(), role) for part, role in line]


def test_a_histogram_without_threshold_or_room():
    lines = histogram([(3, 1), (12, 1), (40, 2)], (0.0, 50.0), None, 13, 1)
    assert [draw(line, color=False) for line in lines] == ["2 ▄▄▄▄    ██", "  ──────────", "  0       50"]
    assert {role for _, role in lines[0]} <= {"muted", ""}
    assert text(histogram([(1.0, 1)], (0.0, 0.0), 1.0, 1, 1)[0]) == "1   │██"
