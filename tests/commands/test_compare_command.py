"""`evaltui compare` of runs that were kept, and of result files of google-adk."""

import json

import pytest
from command_line import call

from tests.stored_runs import change, selected, store_run, summary


def keep(agent, **statuses):
    cases = [summary("lights", case, status, expects="1") for case, status in statuses.items()]
    return store_run(agent, [selected("lights", statuses, whole=True)], cases)


@pytest.fixture
def agent(write_agent):
    return write_agent("")


def test_two_runs(agent, capsys):
    base, candidate = keep(agent, a="PASSED", b="FAILED"), keep(agent, a="FAILED", b="FAILED", c="PASSED")
    assert call("compare", agent, base.stem, candidate.stem) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"compared with {base.stem} (2 cases, 1 pass)",
        "  broken   a  ✓ → ✗",
        "  new      c  ✓",
        "  1 broken, 1 new, 1 unchanged (1 of them does not pass)",
        "  better on 0, worse on 1 of 2 cases: p = 1 (exact McNemar test)",
    ]
    assert call("compare", agent, base.stem, candidate.stem, "--fail-on-regression") == 1
    assert call("compare", agent, candidate.stem, base.stem, "--fail-on-regression") == 0


def test_paths_need_no_agent_and_the_current_folder_is_the_default(agent, monkeypatch, capsys):
    base, candidate = keep(agent, a="PASSED"), keep(agent, a="PASSED")
    assert call("compare", base, candidate) == 0
    monkeypatch.chdir(agent)
    assert call("compare", base.stem, "last") == 0
    assert capsys.readouterr().out.count("1 unchanged") == 2


def test_reports(agent, tmp_path, capsys):
    base, candidate = keep(agent, a="PASSED"), keep(agent, a="FAILED")
    out = tmp_path / "out.txt"
    words = ("compare", agent, base.stem, candidate.stem, "--report", "json", "--report", f"console={out}")
    assert call(*words) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["version"] == 1
    assert document["totals"]["broken"] == 1
    assert document["base"]["path"] == str(base)
    assert (document["candidate"]["status"], document["candidate"]["seconds_in_all"]) == ("PASSED", 1.5)
    assert "broken   a  ✓ → ✗" in out.read_text()


def test_a_result_file_of_google_adk(agent, capsys):
    results = agent / ".adk" / "eval_history"
    results.mkdir(parents=True)
    entries = [
        {"eval_id": "a", "final_eval_status": 1, "session_id": "s"},
        {"eval_id": "z", "final_eval_status": 1, "session_id": "s"},
    ]
    text = json.dumps(json.dumps({"eval_set_id": "lights", "eval_case_results": entries}))
    (results / "my_agent_lights_17.25.evalset_result.json").write_text(text)
    keep(agent, a="FAILED", b="PASSED")
    assert call("compare", agent, "my_agent_lights", "last") == 0
    assert capsys.readouterr().out.splitlines() == [
        "compared with my_agent_lights_17.25 (2 cases, 2 pass)",
        "  broken   a  ✓ → ✗",
        # It does not say whether it had all cases.
        "  gone     z  ✓",
        "  1 broken, 1 gone, 1 not run",
        "  better on 0, worse on 1 of 1 case: p = 1 (exact McNemar test)",
    ]


def test_a_failure_in_a_result_file_of_google_adk_excuses_none(agent, capsys):
    """The file does not say what was expected, which may have been something else."""
    results = agent / ".adk" / "eval_history"
    results.mkdir(parents=True)
    entries = [{"eval_id": "a", "final_eval_status": 2, "session_id": "s"}]
    text = json.dumps({"eval_set_id": "lights", "eval_case_results": entries})
    (results / "my_agent_lights_17.25.evalset_result.json").write_text(text)
    keep(agent, a="FAILED")
    assert call("compare", agent, "my_agent_lights", "last", "--fail-on-regression") == 1
    assert "the baseline does not say what was expected" in capsys.readouterr().out


def test_wrong_use(agent, capsys):
    base = keep(agent, a="PASSED")
    wrong = {
        ("nothing", "last"): "has no run 'nothing'",
        ("last", str(agent / "none.sqlite")): "has no run",
        ("last", "last", "--report", "junit"): "'junit' is not one of console, json",
    }
    for words, says in wrong.items():
        assert call("compare", agent, *words) == 2
        assert says in capsys.readouterr().err
    assert call("compare", "last") == 2
    assert "CANDIDATE" in capsys.readouterr().err
    change(base, "PRAGMA user_version = 99")
    assert call("compare", agent, "last", "last") == 2
    assert "was written by a newer version of evaltui (format 99)" in capsys.readouterr().err
