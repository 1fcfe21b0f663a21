"""`evaltui new --adk`: what it writes runs and passes at once."""

import pytest
from command_line import call


def test_the_cases_of_a_starter_with_google_adk_pass_at_once(tmp_path, capsys):
    pytest.importorskip("google.adk")
    assert call("new", tmp_path / "desk", "--adk") == 0
    assert call("run", tmp_path / "desk") == 0
    assert "3 passed" in capsys.readouterr().out
