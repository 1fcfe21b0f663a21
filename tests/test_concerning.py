"""The command that names the tests of a change finds those that a newcomer would look for."""

import pytest
from concerning import concerning


@pytest.mark.parametrize(
    ("changed", "test"),
    [
        ("evaltui/core/metrics/trajectory.py", "tests/core/metrics/test_trajectory.py"),
        ("evaltui/reports/junit.py", "tests/golden/test_golden_transcripts.py"),
        ("evaltui/agents/adapters/langgraph/turn.py", "tests/agents/test_langgraph.py"),
        ("evaltui/guide/ci.md", "tests/test_ci_jobs.py"),
        ("evaltui/tui/matrix/screen.py", "tests/tui/test_matrix_screen.py"),
        ("tests/core/test_diff.py", "tests/core/test_diff.py"),
    ],
)
def test_a_changed_file_names_its_tests(changed, test):
    assert test in concerning([changed])


def test_a_metric_does_not_concern_everything():
    assert len(concerning(["evaltui/core/metrics/trajectory.py"])) < 10


def test_a_file_that_nothing_names_concerns_no_test():
    assert concerning(["LICENSE" + ".old"]) == []
