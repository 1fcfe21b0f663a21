"""The rows of the criteria and the page beside them, as text."""

from dataclasses import replace

import pytest

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import Status
from evaltui.documents.line_changes import LineChange
from evaltui.runs.score_table import Trial
from evaltui.text.lines import cells, draw
from evaltui.tui.criteria.page import write_row
from evaltui.tui.criteria.rows import Group, columns_of, row_line
from evaltui.tui.theme import COLORS, FILLS
from evaltui.tui.widgets.writer import Page
from evaltui.workbench.criteria.effect import Effect, Flip, Flips
from evaltui.workbench.criteria.rows import MetricRow, SettingRow

HALF, FINE, BAD = (CaseId("talk.evalset.json", eval_id) for eval_id in ("half", "fine", "bad"))
TRIAL = Trial(
    mean=0.5,
    scored=3,
    passing=2,
    now_pass=(HALF, BAD),
    scores=((0.0, 1), (0.5, 1), (1.0, 1)),
    cases=((BAD, 0.0), (HALF, 0.5), (FINE, 1.0)),
)
ROW = MetricRow(
    "response_match_score", "Word overlap.", True, 0.5, 0.8, needs=("expected turns",), trial=TRIAL
)
UNUSED = MetricRow(
    "final_response_match_v2", "Agrees.", needs=("expected turns", "a judge model"), subject="Judge"
)


FLIPS = Flips(
    (Flip(HALF, Status.FAILED, Status.PASSED, passes=True),),
    scored=3,
)
EFFECT = Effect(
    "test_config.json",
    FLIPS,
    still_failing=((BAD, Status.FAILED),),
    why={BAD: "tool 0.00"},
    change=(
        LineChange("-", 3, '  "response_match_score": 0.8'),
        LineChange("+", 3, '  "response_match_score": 0.5'),
    ),
)


def page_of(row, effect, width=48, height=30):
    page = Page(width)
    places = write_row(page, row, row if isinstance(row, MetricRow) else None, effect, height)
    assert all(cells(line) <= width for line in page.lines)
    roles = {word for line in page.lines for _, role in line for word in role.split()}
    assert roles <= {*COLORS, *FILLS, "bold", "underline"}
    return [draw(line, color=False) for line in page.lines], places


def test_a_metric_shows_its_scores_the_flips_and_what_is_written():
    lines, places = page_of(ROW, EFFECT)
    assert lines == [
        "Word overlap.",
        "range 0 to 1   needs expected turns",
        "",
        "Last run  3 scores, mean 0.50 " + "─" * 18,
        "1 ██                    │██                  ██",
        "  ██                    │██                  ██",
        "  ██                    │██                  ██",
        "  ██                    │██                  ██",
        "  ──────────────────────┴──────────────────────",
        "  0                    0.5                    1",
        "✗ 2/3 pass  at ≥ 0.50                 saved 0.80",
        "",
        "Outcomes   ✗ → ✓ 1 " + "─" * 29,
        "  ✗ → ✓  half",
        "  ✗      bad              still fails: tool 0.00",
        "",
        "test_config.json  −1  +1 " + "─" * 23,
        ' 3 - "response_match_score": 0.8',
        ' 3 + "response_match_score": 0.5',
        "",
        "Cases  by score " + "─" * 32,
        "  ✗ bad                          0.00 ─────│────",
        "  ✓ half                         0.50 ━━━━━│────",
        "  ✓ fine                         1.00 ━━━━━│━━━━",
    ]
    assert list(places.values()) == [HALF, BAD, BAD, HALF, FINE]
    assert all(case.eval_id in lines[line] for line, case in places.items())


def test_stale_results_are_said_beside_what_is_made_of_them():
    lines, _ = page_of(ROW, replace(EFFECT, stale=2), width=60)
    assert any(line.startswith("Last run  3 scores, mean 0.50   2 stale ─") for line in lines)
    assert any(line.startswith("Outcomes   ✗ → ✓ 1   2 stale ─") for line in lines)


def test_where_it_is_low_the_outcomes_come_first():
    lines, _ = page_of(ROW, EFFECT, height=8)
    assert lines[:3] == ["Word overlap.", "", "Outcomes   ✗ → ✓ 1 " + "─" * 29]
    assert lines.index("Cases  by score " + "─" * 32) > lines.index("  ✗ → ✓  half")


@pytest.mark.parametrize(
    ("flips", "line"),
    [
        (Flips(waiting=2), "  ◐ 2 cases being scored"),
        (Flips(waiting=2, is_held=True), "  ◐ 2 cases scored when applied"),
        (Flips(unknown=1, scored=2), "  — 1 case without a run log"),
        (Flips(), "  —  No results yet   esc then R run all"),
        (Flips(scored=3), "  No case flips"),
        (
            Flips(problem="Config has errors; results stay as they were"),
            "! Config has errors; results stay as they were",
        ),
    ],
)
def test_what_is_not_known_is_said(flips, line):
    assert line in page_of(ROW, Effect("test_config.json", flips, change=EFFECT.change))[0]


def test_the_set_is_named_where_there_is_room_or_another_has_such_a_case():
    named = {"talk.evalset.json": "talk"}
    assert "  ✗ → ✓  half" in page_of(ROW, Effect("c", FLIPS, change=EFFECT.change, sets=named))[0]
    wide = page_of(ROW, Effect("c", FLIPS, change=EFFECT.change, sets=named), width=60)[0]
    twins = Effect("c", FLIPS, change=EFFECT.change, sets=named, twins=frozenset({"half"}))
    assert "  ✗ → ✓  talk › half" in wide
    assert "  ✗ → ✓  talk › half" in page_of(ROW, twins)[0]


def test_without_changes_the_page_shows_the_criterion_or_what_adding_writes():
    lines, _ = page_of(ROW, Effect("c.json", Flips(), written={"response_match_score": {"threshold": 0.5}}))
    assert lines[12:17] == [
        "c.json " + "─" * 41,
        '"response_match_score": {',
        '  "threshold": 0.5',
        "}",
        "",
    ]
    added = (LineChange("+", 4, '  "final_response_match_v2": 0.8'),)
    lines, places = page_of(UNUSED, Effect("c.json", Flips(), added=added))
    assert lines[-2:] == ["space adds to c.json " + "─" * 27, ' 4 + "final_response_match_v2": 0.8']
    assert not places


def test_a_metric_without_a_range_or_a_score():
    row = MetricRow(
        "token_usage_v1", "Tokens.", interval=None, gates=False, trial=Trial(40.0, 1, scores=((40.0, 1),))
    )
    lines, _ = page_of(row, Effect("c.json", Flips()))
    assert "range 0 and up" in lines
    assert lines[-1] == "  0" + " " * 41 + "40"
    lines, _ = page_of(MetricRow("a", "A.", True, 0.5), Effect("c.json", Flips()))
    assert "Not scored in the last run" in lines
    lower = MetricRow("words", "Own.", True, 2.0, 2.0, (0.0, 4.0), trial=TRIAL, lower_is_better=True)
    assert any("at ≤ 2.00" in line for line in page_of(lower, Effect("c.json", Flips()))[0])


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_rows_keep_their_columns(width):
    rows = [ROW, MetricRow("a_metric_with_a_name_that_is_longer_than_any", "", True, 0.333, 0.333), UNUSED]
    columns = columns_of(rows, width)
    first, second = (draw(row_line(row, columns, width, here=False), color=False) for row in rows[:2])
    assert first.index("0.50") == second.index("0.333") + 1
    assert first.startswith("response_ma")
    assert "2/3 pass" in first
    assert "— not scored" in second
    assert ("mean 0.50" in first) is (width > 80)


def test_a_folded_group_names_what_is_in_it():
    group = Group("Judge", (UNUSED, UNUSED), False)
    columns = columns_of([UNUSED], 80)
    assert draw(row_line(group, columns, 80, here=False), color=False) == (
        "▸ Judge  2  needs a judge model   final_response_match_v2, final_response_match…"
    )
    assert draw(row_line(UNUSED, columns, 80, here=False), color=False) == (
        "  final_response_match_v2  0 to 1  needs expected turns"
    )


def test_a_choice_that_is_current_has_arrows():
    row = SettingRow("thoughts", "Thoughts", "ignore", False, "Thoughts.", ("ignore", "score"))
    columns = columns_of([], 60)
    assert draw(row_line(row, columns, 60, here=True), color=False) == 'Thoughts      ‹ "ignore" ›  default'
    assert draw(row_line(row, columns, 60, here=False), color=False) == 'Thoughts      "ignore"  default'
