"""`evaltui new`: what it writes runs and passes at once."""

import pytest
from command_line import call


@pytest.mark.parametrize("options", [[], ["--adk"]], ids=["native", "adk"])
def test_the_cases_of_a_starter_pass_at_once(tmp_path, capsys, options):
    if options:
        pytest.importorskip("google.adk")
    folder = tmp_path / "desk"
    assert call("new", folder, *options) == 0
    out = capsys.readouterr().out
    assert "orders.evalset.json  3 cases" in out
    assert f"evaltui run {folder}" in out
    assert call("run", folder) == 0
    assert "3 passed" in capsys.readouterr().out


def test_what_is_there_is_named_and_kept(tmp_path, capsys):
    (tmp_path / "agent.py").write_text("mine", encoding="utf-8")
    assert call("new", tmp_path) == 2
    assert "agent.py already exists" in capsys.readouterr().err
    assert (tmp_path / "agent.py").read_text(encoding="utf-8") == "mine"
    assert len(list(tmp_path.iterdir())) == 1
